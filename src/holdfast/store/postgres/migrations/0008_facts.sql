-- Of the ledger of facts: this script comes with it.
SELECT 1;
