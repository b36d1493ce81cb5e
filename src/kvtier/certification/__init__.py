"""What reproducibility reviewers ask for: citation, manifest, checksums, research object crate and claims table, made from the build."""
