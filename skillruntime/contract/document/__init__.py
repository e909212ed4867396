"""The document of a contract, `contract.json`: its form, its checks, and what it declares."""
