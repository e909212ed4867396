"""Read and check the document of a contract, `contract.json`."""
