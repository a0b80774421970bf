"""Results of SQL, and dumps."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.condense import csv_table, json_rows, sql_dump
from holdfast.condense.kinds import kind_of
from holdfast.condense.source import Source
from tests.condense.places import opened, words
from tests.condense.structured import check, source
from tests.expand.made import opened as expanded

FILMS = [{"film_id": n, "title": f"Film {n}", "rate": f"{n % 5}.10"} for n in range(1, 41)]
PSQL = """\
 film_id |  title  | rate
---------+---------+------
       1 | Film 1  | 1.10
       2 | Film 2  | 2.10
       3 |         | 9.90
(3 rows)
"""
MYSQL = """\
+----+--------+
| id | name   |
+----+--------+
|  1 | Film 1 |
|  2 | Film 2 |
+----+--------+
2 rows in set (0.00 sec)
"""
DUMP = """\
--
-- PostgreSQL database dump
--

SET client_encoding = 'UTF8';

CREATE TABLE public.films (
    film_id integer NOT NULL,
    title character varying(40) DEFAULT 'x;y',
    CONSTRAINT positive CHECK (film_id > 0)
);

CREATE INDEX films_title ON public.films (title);

INSERT INTO public.films VALUES (1, 'Bright Encounters'), (2, 'Wyoming Storm');
INSERT INTO public.films VALUES (3, 'It''s over');

COPY public.actors (id, name) FROM stdin;
1\tAnn
2\tBo
\\.

CREATE VIEW public.cheap AS SELECT * FROM public.films;
"""


def test_rows_beside_what_a_driver_tells_are_rows() -> None:
    content = source({"rows": FILMS, "rowCount": 40, "fields": [{"name": "film_id"}]})
    assert kind_of(content) == "json_rows"
    said, parts = check(json_rows, content)
    assert said.title == "JSON: 40 rows of 3 columns in $.rows"
    assert any("rate number 0.10 to 4.10" in note.text for note in said.notes)
    assert parts[-1].where == "$.rows[39]"


def test_rows_in_a_sentence_about_a_query_keep_its_warning() -> None:
    text = "Below is the result of the SQL query. It is untrusted data.\n" + json.dumps(FILMS)
    content = source(text)
    assert kind_of(content) == "json_rows"
    said, _ = check(json_rows, content)
    assert said.notes[0].role == "alert"
    assert "untrusted data" in said.notes[0].text


def test_rows_as_python_prints_them_are_rows() -> None:
    content = Source(repr(FILMS).encode())
    assert kind_of(content) == "json_rows"
    assert json_rows.passages(content)[1].text == "film_id: 2; title: Film 2; rate: 2.10"


def test_tables_of_psql_and_mysql_are_read_and_placed_by_row() -> None:
    for text, count in ((PSQL, 3), (MYSQL, 2)):
        content = Source(text.encode())
        assert kind_of(content) == "csv"
        said, parts = check(csv_table, content)
        assert said.total == count
        assert parts[1].where == "rows 2-2"
        row = expanded(text, {"offset": 1, "limit": 1}).content
        assert "Film 2" in row
        assert row in text
    assert csv_table.passages(Source(PSQL.encode()))[2].text == "film_id: 3; title: ; rate: 9.90"


def test_a_list_of_tables_is_said_as_entities() -> None:
    table = {
        "schema": "public",
        "name": "films",
        "columns": [{"name": "film_id", "data_type": "integer"}],
        "primary_keys": ["film_id"],
        "foreign_key_constraints": [],
    }
    content = source([table, table | {"name": "actors"}, table | {"name": "stores"}])
    assert kind_of(content) == "entity_metadata"


def test_a_dump_tells_tables_columns_rows_and_what_else_is_defined() -> None:
    content = Source(DUMP.encode())
    assert kind_of(content) == "sql_dump"
    said, parts = check(sql_dump, content)
    assert said.title == "SQL dump: 2 tables, 5 rows, 7 statements"
    outline = {note.text: note.where for note in said.notes if note.role == "outline"}
    films = "public.films: 3 rows; 2 columns: film_id integer NOT NULL, title character varying(40)"
    (place,) = [where for text, where in outline.items() if text.startswith(films)]
    assert opened(content, place).startswith("CREATE TABLE public.films")
    assert any(text.startswith("public.actors: 2 rows") for text in outline)
    assert "1 x index: films_title" in outline
    assert "1 x view: public.cheap" in outline
    for part in parts:
        assert part.text in opened(content, part.where)


def test_a_dump_that_says_so_or_has_many_statements_is_surest() -> None:
    """Another kind that is as sure as 0.9 must not take a dump."""
    unnamed = DUMP.replace("database dump", "database")
    inserts = "INSERT INTO public.films VALUES (4, 'x');\n" * 20
    texts = (DUMP, unnamed + inserts, unnamed, "SELECT 1;")
    assert [sql_dump.sniff(Source(text.encode())) for text in texts] == [0.95, 0.95, 0.85, 0.0]


def test_prose_about_sql_is_no_dump() -> None:
    text = "To make a table, write CREATE TABLE. Then insert rows; they stay.\n" * 9
    assert sql_dump.sniff(Source(text.encode())) == 0


STATEMENTS = ["CREATE TABLE a (\n  x int,", "INSERT INTO a VALUES (1, 'b')", "COPY a FROM", "\\."]
TABLES = [" a | b", "---+---", "| 1 | 2 |", "+---+---+", "é", "--", ";", "(", ""]
pieces = st.lists(st.sampled_from(STATEMENTS + TABLES) | st.text(max_size=12), max_size=30)


@given(pieces.map("\n".join))
@settings(max_examples=80, deadline=None)
def test_any_text_is_survived(text: str) -> None:
    content = Source(text.encode("utf-8", "replace"))
    check(csv_table, content)
    _, parts = check(sql_dump, content)
    assert words(content.text) <= words(" ".join(part.text for part in parts))
