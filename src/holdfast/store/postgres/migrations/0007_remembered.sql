SELECT 1;  -- the turns that are remembered: replaced when the two are merged
