-- Of the memory of turns: this script comes with it.
SELECT 1;
