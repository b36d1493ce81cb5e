"""Questions to the ledger: what a number rests on, what a change would move, what was claimed, what the audits found."""
