"""The KV block object: payload written once, identity immutable, policy state that survives where the payload does not (SPEC §8)."""
