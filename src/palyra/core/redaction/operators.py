"""Operators between a name and the value that it is given, in all the languages that give values:
signs, brackets, tags, words.
"""

import re

OPERATOR = re.compile(r"""(?x)
    (?P<close>(?:\\*["'`]|\[\]|[\])}>]|\*{1,3}|&quot;){0,3})
    (?P<op>
        [ ]?[:=]{1,2}[ ]?[\[(]\s{0,8}(?=["'])  # keys: ["..."
      |
        (?:</\w{1,40}>)?\s{0,16}<\w{1,40}>  # <key>password</key><string>...</string>
      | [ ]?\{[^{}\n]{0,24}\}[ ]?=[ ]?(?=["'])  # string Token { get; set; } = "..."
      | [ ]\{\s{0,8}(?:[a-z]{4,11}[ ]{1,8}=[ ][^\n{}]{1,80}\n\s{0,8}){0,3}default[ ]{1,8}=[ ]  # variable "x" { default =
      | \([ \t]{0,4}(?=["'`])  # setPassword("...")
      | [ ]\[(?=["'])  # password ["..."]
      | [ ]?:[ ][>|][\-+]?\n[ ]{1,16}  # password: >-
      | [ ]?:[ ]&\w{1,24}[ ](?![=|])  # password: &anchor ...
      | :\*{1,2}[ ]{1,4}  # **Password:** ...
      | [ ]?\.{3,40}[ ]?:?[ ]{1,4}  # Password .....: ...
      | (?:[ ](?!value|content)[\w:.\-]{1,32}=["'][^"'<>\n]{0,80}["']){1,4}[ ]?>\s{0,16}<value>
      | (?:[ ](?!value|content)[\w:.\-]{1,32}=["'][^"'<>\n]{0,80}["']){1,4}[ ]?>  # <password type="...">
      | \?:[ ]?[a-z]{3,8}[ ]?=[ ]?(?=["'`])  # secret?: string = "..."
      | [ ]by[ ][a-z]{4,8}\((?=["'])  # val apiKey by extra("...")
      | [ ]?\([\w .,\-]{1,24}\)[ ]?[:=][ ]{0,4}  # password (staging): ...
      | (?:[ ](?:is|was|has[ ]been)[ ][a-z]{3,12})?[ ](?:for|of|from|on|in|at)[ ][\w.@\-]{1,32}(?:[ ][\w.@\-]{1,32}){0,2}(?:[ ]?[:=]|[ ]is)[ ]{1,4}
      | :[ ]{0,2}\n[ \t]{1,8}[\w.\-]{1,32}:[ ](?=["'\w])  # secrets: under it, one a line
      | [ ](?:\?[:?]|\|\||or)[ ](?=["'])  # getenv("TOKEN") ?: "..."
      | [ ]{1,2}[-–—][ ]{1,2}
      | [ ]{0,2}[:=][ ]{1,2}!!\w{3,8}[ ]
      |
        [,\s]{1,40}["']?(?:value|content)["']?\s{0,4}[:=]\s{0,4}  # <add key="password" value="...">, {"name": "TOKEN", "value": "..."}
      | [ \t]{0,6}(?:[：＝]|[:?|+!]{0,3}=[=>~]{0,2}|:{1,3}|->|,|\|)[ \t]{0,8}
      | [ \t]+(?:is|was|to|as)[ \t]*:?[ \t]+
      | [ \t]+(?:is|was|ist|war|lautet|c'est|est|es|era|é|è|e'|je|jest|är|er|este|là|adalah|είναι|это|היא|הוא|هي|هو)
        (?:[ ](?:now|still|just|jetzt|nun|noch|maintenant|toujours|ahora|adesso|agora|teraz|nu))?[ \t]*:?[ \t]+
      | [ \t]{0,2}(?:は|是|为|為|는|은)[ \t]{0,2}[:：]?[ \t]{0,2}
      | [ \t]+(?:As[ ])?[A-Za-z]{3,12}[ \t]*:?=[ \t]*(?=["'`])  # var token string = "..."
      | [ \t]{1,4}
      | [\-_]
      | (?<=>)
    )""")  # noqa: E501
_WORDS_BETWEEN = re.compile(r"(?:(?:is|was|has been) [a-z]{3,12} )?(?:for|of|from|on|in|at) ")
# What "is" is in other languages, and "is now". The value stands behind it as it does in English.
_IS = re.compile(
    r"(?:is|was|ist|war|lautet|c'est|est|es|era|é|è|e'|je|jest|är|er|este|là|adalah|είναι|это|היא|הוא|هي|هو|"
    r"は|是|为|為|는|은)\b(?: \w+)?\s*[:：]?"
)
_COMMON = frozenset({"", "=", ":", ",", "|"})
# password: >-, password: &anchor, **Password:**, Password .....:
_LED = re.compile(r":(?: [>|][\-+]?| &\w+|\*{1,2})|\.{3,}\s?:?")
_ELSE = frozenset({"[", "?:", "??", "||", "or"})  # what may be a name as well


def kind_of(operator: str) -> str:
    """Return one name for all operators that say the same."""
    if operator in _COMMON:
        return operator
    if operator in ("–", "—"):
        return "-"
    if operator.endswith("<value>"):
        return "</"
    if operator[:1] in (":", ".") and _LED.fullmatch(operator):
        return ":"
    if (
        operator.endswith(">")
        and "=" in operator
        and operator[0] != "<"
        and '"' in operator.replace("'", '"')
    ):
        return "@>"  # attributes of a tag
    if "\n" in operator and operator.endswith(":"):
        return "for"
    if operator in _ELSE or operator.startswith("by "):
        return "("
    if operator.startswith("?:"):
        return "="
    if _WORDS_BETWEEN.match(operator):
        return "for:" if operator.endswith((":", "is")) else "for"
    if operator.endswith("["):
        return "for"
    if _IS.fullmatch(operator):
        return "is"
    if "!!" in operator:
        return "="
    return "()" if operator.startswith("(") and operator.endswith((":", "=")) else operator
