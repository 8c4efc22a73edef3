from aenv import register_tool


# No return annotation: with one, the original would also check and wrap the result.
@register_tool
def echo(text: str):
    """Says the text back."""
    return text
