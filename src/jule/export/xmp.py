"""XMP sidecar files: the cluster of a picture as a keyword, for photo managers."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

# What XML 1.0 cannot contain, not even escaped: control characters, surrogates, two non-characters.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
TEMPLATE = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/">
   <dc:subject><rdf:Bag><rdf:li>{keyword}</rdf:li></rdf:Bag></dc:subject>
   <lr:hierarchicalSubject><rdf:Bag><rdf:li>jule|{branch}</rdf:li></rdf:Bag></lr:hierarchicalSubject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""


def xmp_bytes(keyword: str) -> bytes:
    """Return an XMP file with one keyword, also as a branch below "jule".

    Whatever the keyword contains, the file is well-formed, and nothing in it is markup.

    Examples
    --------
    >>> b"<rdf:li>cats &amp; dogs</rdf:li>" in xmp_bytes("cats & dogs")
    True
    """
    text = escape(NOT_XML.sub("_", keyword))
    branch = text.replace("|", "/")  # which separates the levels of a branch
    return TEMPLATE.format(keyword=text, branch=branch).encode()
