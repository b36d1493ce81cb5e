"""KV-cache tiering for LLM inference: analytic tables, simulators, audits and an evidence ledger."""

__version__ = "6.1.0.dev0"
