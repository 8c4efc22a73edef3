import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { covers, DiagramError, mayImport, readDiagram } from "./diagram.ts";

const draw = (...lines: string[]) => readDiagram(["# Title", "", "```diagram", ...lines, "```", ""].join("\n"));

describe("readDiagram", () => {
  it("parses arrows in both directions, lists on both sides, and comments", () => {
    const diagram = draw("contract <- kit, sdk   (the words)", "", "aenv -> kit", "environments/* -> kit, aenv");
    expect(diagram.arrows).toEqual([
      { from: "kit", to: "contract" },
      { from: "sdk", to: "contract" },
      { from: "aenv", to: "kit" },
      { from: "environments/*", to: "kit" },
      { from: "environments/*", to: "aenv" },
    ]);
    expect([...diagram.names]).toEqual([
      ["contract", 4],
      ["kit", 4],
      ["sdk", 4],
      ["aenv", 6],
      ["environments/*", 7],
    ]);
  });

  it("parses the packages that a room may import", () => {
    expect(draw("contract imports zod only", "a imports b, c only").pure).toEqual(
      new Map([
        ["contract", ["zod"]],
        ["a", ["b", "c"]],
      ]),
    );
  });

  it.each(["kit", "kit -> ", "kit -> sdk -> contract", "kit => sdk", "Kit -> sdk", "kit -> sdk; a -> b"])(
    "refuses '%s' and names its line",
    (line) => {
      const read = () => draw("a -> b", line);
      expect(read).toThrow(DiagramError);
      expect(read).toThrow(expect.objectContaining({ line: 5 }));
    },
  );

  it("rejects a text without a diagram", () => {
    expect(() => readDiagram("# No diagram here")).toThrow("no fenced block named `diagram`");
  });

  it("allows exactly the imports with an arrow", () => {
    const room = fc.constantFrom("a", "b", "c", "d", "envs/x", "envs/y");
    fc.assert(
      fc.property(fc.array(fc.tuple(room, room, fc.boolean()), { minLength: 1 }), room, room, (arrows, from, to) => {
        const diagram = draw(...arrows.map(([one, other, isForward]) => (isForward ? `${one} -> ${other}` : `${other} <- ${one}`)));
        expect(mayImport(diagram, from, to)).toBe(arrows.some(([one, other]) => one === from && other === to));
      }),
    );
  });
});

describe("covers", () => {
  it("matches every room of a folder by a star", () => {
    expect(covers("envs/*", "envs/echo")).toBe(true);
    expect(covers("envs/*", "envs")).toBe(false);
    expect(covers("kit", "kit")).toBe(true);
    expect(covers("kit", "kitten")).toBe(false);
  });
});
