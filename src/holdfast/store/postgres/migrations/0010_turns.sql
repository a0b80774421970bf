-- The owners who have jobs that wait, so that they can take turns.
CREATE INDEX jobs_in_turn ON holdfast.jobs (kind, priority, workspace, username, due, id)
    WHERE due IS NOT NULL;

-- Whose turn it is: the owners with a job that is due, at most so many, from the one behind who was
-- served last on, in the order of their names and round. Not all owners are looked at, for many may
-- have nothing but jobs that wait: turn 0 says where the look ended. If it has met none, it is the
-- turn of who has waited longest; so it is where nobody was served before.
CREATE FUNCTION holdfast.in_turn(
    of_kind text, of_priority smallint, after_workspace text, after_username text,
    until double precision, most integer, looks integer)
    RETURNS TABLE (turn integer, workspace text, username text)
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    oldest record;
    owner record;
    first record;
    turns integer := 0;
BEGIN
    SELECT j.workspace, j.username INTO oldest FROM holdfast.jobs AS j
    WHERE j.kind = of_kind AND j.priority = of_priority AND j.due <= until
    ORDER BY j.due, j.id LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF after_workspace IS NULL THEN
        turns := 1;
        first := oldest;
        RETURN QUERY SELECT 1, oldest.workspace, oldest.username;
        after_workspace := oldest.workspace;
        after_username := oldest.username;
    END IF;
    FOR look IN 1 .. looks LOOP
        EXIT WHEN turns >= most;
        SELECT j.workspace, j.username INTO owner FROM holdfast.jobs AS j
        WHERE j.kind = of_kind AND j.priority = of_priority AND j.due IS NOT NULL
          AND (j.workspace, j.username) > (after_workspace, after_username)
        ORDER BY j.workspace, j.username LIMIT 1;
        IF NOT FOUND THEN
            SELECT j.workspace, j.username INTO owner FROM holdfast.jobs AS j
            WHERE j.kind = of_kind AND j.priority = of_priority AND j.due IS NOT NULL
            ORDER BY j.workspace, j.username LIMIT 1;
        END IF;
        EXIT WHEN turns > 0 AND owner = first;
        after_workspace := owner.workspace;
        after_username := owner.username;
        IF EXISTS (SELECT FROM holdfast.jobs AS j
                   WHERE j.kind = of_kind AND j.priority = of_priority
                     AND j.workspace = owner.workspace AND j.username = owner.username
                     AND j.due <= until) THEN
            turns := turns + 1;
            IF turns = 1 THEN
                first := owner;
            END IF;
            RETURN QUERY SELECT turns, owner.workspace, owner.username;
        END IF;
    END LOOP;
    IF turns = 0 THEN
        RETURN QUERY SELECT 1, oldest.workspace, oldest.username;
    END IF;
    RETURN QUERY SELECT 0, after_workspace, after_username;
END
$$;
