import { describe, expect, it } from "vitest";
import { errorLines } from "./instance-batch.ts";

describe("the errors of a batch", () => {
  it("are printed whole, and each message once with the numbers of its instances", () => {
    const failed = (message: string) => ({ error: { code: "instance.start_failed", message } });
    const long = `the environment did not load: ${"x".repeat(300)}; next step`;
    expect(errorLines([failed(long), { error: null }, failed("other"), failed(long)])).toEqual([`  1, 4: ${long}`, "  3: other"]);
  });
});
