import { PyError } from "@aenv/benchmark";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readXml } from "./reader.ts";

describe("XML", () => {
  it("has elements and attributes with references resolved", () => {
    const [root, ...inside] = readXml(
      `<a x='1' y="&lt;&#x41;&#66; &amp;&#10;\t\r\n">text &gt; <b/><!-- <c/> --><?p x?><![CDATA[<d>]]><e><b z=''/></e></a>`,
    );
    expect(root?.attributes).toEqual([
      { name: "x", value: "1" },
      { name: "y", value: "<AB &\n  " },
    ]);
    expect(inside.map(({ name, end }) => [name, end])).toEqual([
      ["b", 2],
      ["e", 4],
      ["b", 4],
    ]);
  });

  it("has names with their namespace", () => {
    const elements = readXml('<a xmlns="u" xmlns:p="v"><b/><p:c p:x="1" x="2"/><d xmlns=""/></a>');
    expect(elements.map(({ name }) => name)).toEqual(["{u}a", "{u}b", "{v}c", "d"]);
    expect(elements[2]?.attributes).toEqual([
      { name: "{v}x", value: "1" },
      { name: "x", value: "2" },
    ]);
  });

  it.each([
    "<a>",
    "<a></b>",
    "<a/><b/>",
    "<a/> x",
    "<a x=1/>",
    "<a x='1' x='2'/>",
    "<a x='1'y='2'/>",
    "<a x='<'/>",
    "<a x/>",
    "<a>&</a>",
    "<a>&b;</a>",
    "<a>&#0;</a>",
    "<a>&#xd800;</a>",
    "<a>]]></a>",
    "<a>\x01</a>",
    "<a>\ud800</a>",
    "<a><!-- -- --></a>",
    "<a><!DOCTYPE b></a>",
    "<a><?xml version='1.0'?></a>",
    "<p:a/>",
    "<a p:x='1'/>",
    "<a xmlns:p=''/>",
    "<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>",
    "<a:b:c xmlns:a='u'/>",
    "<1/>",
    "<\u1680a/>",
    "< a/>",
  ])("that is not well-formed raises: %j", (text) => {
    expect(() => readXml(text)).toThrow(PyError);
  });

  it("is read or raises, whatever it is", () => {
    const piece = fc.constantFrom(
      "<a>",
      "</a>",
      "<a ",
      "x='1'",
      "/>",
      "<!--",
      "-->",
      "<![CDATA[",
      "]]>",
      "<?",
      "?>",
      "&lt;",
      "&",
      "xmlns:p='u' ",
      "é",
      ">",
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        try {
          readXml(`<a>${pieces.join("")}</a>`);
        } catch (error) {
          expect(error).toBeInstanceOf(PyError);
        }
      }),
    );
  });

  it("may be nested deeply", () => {
    const depth = 20_000;
    expect(readXml("<a>".repeat(depth) + "</a>".repeat(depth))).toHaveLength(depth);
  });
});
