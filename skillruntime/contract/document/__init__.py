"""The document of a contract, `contract.json`: its form, checks and declarations."""
