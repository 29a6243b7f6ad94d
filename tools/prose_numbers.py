"""Numbers of a page's text that were measured, and whether its tables or raw files have them."""
import re

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_PER_CENT = r"[ \n]?(?:%|per cent\b)"
# What a measured number is not part of: a name or version, a range's or date's end, a list's thousands.
_NUMBERS = re.compile(rf"(?<![\w.×/-])(?<!\d,)(?P<sign>−?)(?P<number>{_NUMBER})"
                      r"(?!\w)(?!\.\d)(?!,\d{3})"
                      # The sign may stand behind the last of "60.1 to 62.3 %", "60.1, 61.2 and 62.3 %".
                      rf"(?P<share>(?=(?:(?:,?[ \n](?:to|and|or)|,|–| ±)[ \n]?−?{_NUMBER})*{_PER_CENT}))?")
_OWN_SIGN = re.compile(_PER_CENT)
_CELL_NUMBERS = re.compile(rf"(?<![\w.])[−-]?{_NUMBER}(?:e-?\d+)?")
_CODE = r"`(?:[^`\n]|\n(?!\s*\n))*`"
_NOT_TEXT = re.compile(rf"^```.*?^```$|^[|#].*?$|{_CODE}|\]\([^)]*\)|<!--.*?-->|\d+(?:\.\d+)?e[-−]?\d+",
                       re.MULTILINE | re.DOTALL)


def measured_numbers(text):
    """(line from 0, the number as written, its value, digits behind the point, whether it is in per cent) of each
    number with decimals or in per cent. Blocks of code, tables, headings and links are left out."""
    text = _NOT_TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for found in _NUMBERS.finditer(text):
        number, per_cent = found["number"], found["share"] is not None
        if "." in number or _OWN_SIGN.match(text, found.end()):
            value = float(number.replace(",", "")) * (-1 if found["sign"] else 1)
            line, digits = text.count("\n", 0, found.start()), len(number.partition(".")[2])
            yield line, found["sign"] + number, value, digits, per_cent


def named_values(value):
    """The numbers of a JSON value. Those inside strings, commands for one, are none."""
    if isinstance(value, dict):
        for one in value.values():
            yield from named_values(one)
    elif isinstance(value, list):
        for one in value:
            yield from named_values(one)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def cell_numbers(line):
    """(number, whether its cell is in per cent) of a row of a table. Code is left out."""
    for cell in re.sub(_CODE, "", line).split("|"):
        for found in _CELL_NUMBERS.finditer(cell):
            yield float(found[0].replace(",", "").replace("−", "-")), "%" in cell


def is_among(value, digits, per_cent, known):
    """Whether a number, rounded so, is among the known ones: those up to 1 are shares where the text has a per cent sign.
    A text may leave a minus sign to its words."""
    for one in known:
        for scaled in (one, 100 * one) if per_cent and abs(one) <= 1 else (one,):
            if round(scaled, digits) == value or (value > 0 and round(-scaled, digits) == value):
                return True
    return False
