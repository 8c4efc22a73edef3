import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { covers, DrawingError, mayImport, readDrawing } from "./drawing.ts";

const draw = (...lines: string[]) => readDrawing(["# Title", "", "```drawing", ...lines, "```", ""].join("\n"));

describe("readDrawing", () => {
  it("reads arrows in both directions, lists on both sides, and notes for people", () => {
    const drawing = draw("contract <- kit, sdk   (the words)", "", "aenv -> kit", "environments/* -> kit, aenv");
    expect(drawing.arrows).toEqual([
      { from: "kit", to: "contract" },
      { from: "sdk", to: "contract" },
      { from: "aenv", to: "kit" },
      { from: "environments/*", to: "kit" },
      { from: "environments/*", to: "aenv" },
    ]);
    expect([...drawing.names]).toEqual([
      ["contract", 4],
      ["kit", 4],
      ["sdk", 4],
      ["aenv", 6],
      ["environments/*", 7],
    ]);
  });

  it("reads what a room may use from outside", () => {
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
      expect(read).toThrow(DrawingError);
      expect(read).toThrow(expect.objectContaining({ line: 5 }));
    },
  );

  it("refuses a text without a drawing", () => {
    expect(() => readDrawing("# No drawing here")).toThrow("no fenced block named `drawing`");
  });

  it("allows exactly the arrows that are drawn", () => {
    const room = fc.constantFrom("a", "b", "c", "d", "envs/x", "envs/y");
    fc.assert(
      fc.property(fc.array(fc.tuple(room, room, fc.boolean()), { minLength: 1 }), room, room, (arrows, from, to) => {
        const drawing = draw(...arrows.map(([one, other, isForward]) => (isForward ? `${one} -> ${other}` : `${other} <- ${one}`)));
        expect(mayImport(drawing, from, to)).toBe(arrows.some(([one, other]) => one === from && other === to));
      }),
    );
  });
});

describe("covers", () => {
  it("takes a star for every room of a folder", () => {
    expect(covers("envs/*", "envs/echo")).toBe(true);
    expect(covers("envs/*", "envs")).toBe(false);
    expect(covers("kit", "kit")).toBe(true);
    expect(covers("kit", "kitten")).toBe(false);
  });
});
