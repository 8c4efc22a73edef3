import { expect, it } from "vitest";
import { splitLines } from "./lines.ts";

it("a line that does not end within the limit is an error, and the rest is not read", async () => {
  let read = 0;
  async function* file() {
    yield Buffer.from("first\nsec");
    for (;;) {
      read++;
      yield Buffer.from("ond ");
    }
  }
  const lines = splitLines(file(), 20);
  expect((await lines.next()).value).toMatchObject({ text: "first" });
  await expect(lines.next()).rejects.toThrow("a line of more than 20 characters");
  expect(read).toBe(5);
});
