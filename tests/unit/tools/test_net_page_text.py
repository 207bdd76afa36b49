"""Web pages as clean text: what a reader would read, in time proportional to the page."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.tools.net import urls
from palyra.tools.web.page_text import prose

URL = urls.parse("https://site.example/dir/page")


def text(page: str) -> str:
    return prose(page, URL)[1]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<h1>One</h1><h2>Two <em>more</em></h2>", "# One\n\n## Two more"),
        ("<p>a</p><p>b<p>c", "a\n\nb\n\nc"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"),
        ("<ul><li><p>a</p></li><li><p>b</p></li></ul>after", "- a\n- b\n\nafter"),
        ('<a href="other?x=1#y">link</a>', "[link](https://site.example/dir/other?x=1)"),
        ('<a href="//cdn.example/x">link</a>', "[link](https://cdn.example/x)"),
        (
            '<a href="javascript:alert(1)">link</a> <a href="data:x">b</a> <a href="#top">c</a> <a>d</a>',
            "link b c d",
        ),
        ('<a href="https://user:pw@x.example/">link</a>', "link"),
        ('<a href="/x"><img alt="A picture"></a>', "[[image: A picture]](https://site.example/x)"),
        ("<pre>  a\n    b\n</pre>", "```\n  a\n    b\n```"),
        ("<p>run <code>x &lt; y</code> now</p>", "run `x < y` now"),
        (
            "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2|3</td></tr></table>",
            "| A | B |\n| 1 | 2\\|3 |",
        ),
        ("<table><tr><td><p>only</p><p>layout</p></table>", "only layout"),
        ("a &amp; b &lt; c &copy; &#x41; &nosuch;", "a & b < c © A &nosuch;"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("  lots \n\t of   space  ", "lots of space"),
        ("<nav>menu</nav>body<footer>foot</footer>", "body\n\nfoot"),
        (
            "<script>var x = '<p>no</p>';</script><style>p{}</style><noscript>no</noscript>yes",
            "yes",
        ),
        ("<template>no</template><svg><title>no</title><text>no</text></svg>yes", "yes"),
        ("<p hidden>no</p><p aria-hidden=true>no</p><p style='DISPLAY : none'>no</p>yes", "yes"),
        ("<div hidden>no<div>no</div>no</div>yes", "yes"),
        ("<!-- no --><!doctype html><?php no ?><![CDATA[no]]>yes", "yes"),
        ("<head><title>t</title><p>yes", "yes"),
        (
            "<base href='https://other.example/b/'><a href=c>link</a>",
            "[link](https://other.example/b/c)",
        ),
        ("<main>" + "long " * 50 + "</main><aside>not this</aside>", ("long " * 50).strip()),
        ("<main>short</main><p>and this", "short\n\nand this"),
        ("<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning"),
        ("<p>unclosed <b>tags <i>everywhere", "unclosed tags everywhere"),
        ("</p></div></nope>text", "text"),
        ("text <a href='never closed", "text"),
        ("", ""),
        (
            "soft\u00adhyphen zero\u200bwidth \u202eflipped \U000e0041tagged",
            "softhyphen zerowidth flipped tagged",
        ),
        ("family: 👨\u200d👩\u200d👧 می\u200cخواهم", "family: 👨\u200d👩\u200d👧 می\u200cخواهم"),
    ],
)
def test_a_page_reads_like_this(page: str, expected: str) -> None:
    assert text(page) == expected


def test_the_title_is_the_first_one_of_the_page() -> None:
    assert (
        prose(
            "<svg><title>no</title></svg><title> The \n &quot;page&quot; </title><title>no</title>",
            URL,
        )[0]
        == 'The "page"'
    )


PIECES = [
    "<",
    ">",
    "</",
    "<p",
    "<p>",
    "<li>",
    "<ul>",
    "</ul>",
    "<table>",
    "<tr>",
    "<td>",
    "</table>",
    "<a href=x>",
    "</a>",
    "<pre>",
    "</pre>",
]
PIECES += [
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<title>",
    "<main>",
    "</main>",
    '"',
    "'",
    "=",
    " ",
    "x",
    "&lt;",
    "<h1>",
    "<code>",
    "<head>",
]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_markup_gives_text(pieces: list[str]) -> None:
    # A title may hold it, as text: `<title><script>` opens no script.
    assert "<script>" not in text("".join(pieces))


HOSTILE = {
    "comments": "<!--",
    "open tags": "<a ",
    "open quotes": "<a b='",
    "declarations": "<![",
    "raw text": "<title>a</titl",
    "depth": "<div>",
    "lists": "<ul><li>",
    "end tags": "</p>",
    "attributes": "<a x=1 x=2 ",
    "entities": "&notit;",
    "brackets": "<",
    "tables": "<table><tr><td>",
    "siblings": "<p><li>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_reading_takes_time_in_proportion_to_the_page(name: str) -> None:
    def seconds(size: int) -> float:
        page = HOSTILE[name] * (size // len(HOSTILE[name]))
        began = time.thread_time()
        prose(page, URL)
        return time.thread_time() - began

    small = max(min(seconds(100_000) for _ in range(3)), 0.005)
    assert seconds(800_000) < 8 * small * 4
