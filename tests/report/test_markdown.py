from covshift.report.document import make_cell, make_column, make_document, make_section, make_table
from covshift.report.markdown import document_markdown, table_markdown
from tests.report.example import example_document


def test_cells_stay_in_their_cells():
    columns = [make_column("a|b"), make_column("n", numeric=True, digits=2), make_column("mark")]
    rows = [
        {"a|b": "x | y\nz", "n": 0.5, "mark": make_cell(mark="helps")},
        {"a|b": "back\\slash", "n": make_cell("1.0", value=1.0, mark="harms")},
        {"a|b": make_cell("t", mark="agrees"), "n": make_cell("0", value=0, mark="unclear")},
    ]
    assert table_markdown(make_table("t", "The\ncaption", columns, rows)).splitlines() == [
        "The caption",
        "",
        "| a\\|b | n | mark |",
        "|---|---:|---|",
        "| x \\| y z | 0.50 | helps |",
        "| back\\\\slash | 1.0 ↓ |  |",
        "| t agrees | 0 |  |",
    ]


def test_a_whole_document():
    document = make_document(
        "Title",
        "Lead.",
        facts=[("seed", "0")],
        sections=[make_section("s", "Section", paragraphs=["One.", "Two."])],
    )
    assert document_markdown(document) == (
        "# Title\n\nLead.\n\n- seed: 0\n\n## Section\n\nOne.\n\nTwo.\n"
    )
    example = example_document()
    text = document_markdown(example)
    for section in example["sections"]:
        assert f"## {section['title']}" in text
