import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const file = fileURLToPath(new URL("./kernel-random.ts", import.meta.url));

/** Runs code in a process of its own, whose functions are replaced, and returns what it prints as JSON. */
async function run(code: string): Promise<unknown> {
  const script = `
    import * as early from "node:crypto";
    import { randomBytes as earlyBytes } from "node:crypto";
    import { promisify } from "node:util";
    import { useKernelRandom } from ${JSON.stringify(file)};
    const native = { ...early };
    const nativeRandom = Math.random;
    const numbers = useKernelRandom();
    const answer = await (async () => { ${code} })();
    console.log(JSON.stringify(answer));`;
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

describe("random functions of the kernel", () => {
  it("replace those of Node, also for imports from before", async () => {
    expect(
      await run(`
        const names = ["randomBytes", "randomFill", "randomFillSync", "randomInt", "randomUUID", "pseudoRandomBytes", "rng", "prng"];
        return [names.filter((name) => early[name] !== undefined && early[name] === native[name]), earlyBytes === native.randomBytes, Math.random === nativeRandom];`),
    ).toEqual([[], false, false]);
  });

  it("return what those of Node return, and refuse what they refuse", async () => {
    expect(
      await run(`
        const crypto = early.default;
        const view = new Uint16Array(6);
        const refused = (act) => { try { act(); return null; } catch (error) { return error.code ?? error.name; } };
        const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
        const integers = Array.from({ length: 2000 }, () => crypto.randomInt(-3, 3));
        return {
          bytes: [crypto.randomBytes(70000).length, (await promisify(crypto.randomBytes)(5)).length],
          filled: crypto.randomFillSync(view, 2, 3) === view && [view[0], view[1], view[5]],
          later: (await promisify(crypto.randomFill)(new Uint8Array(8))).some((byte) => byte !== 0),
          buffer: new Uint8Array(crypto.randomFillSync(new ArrayBuffer(64))).some((byte) => byte !== 0),
          integers: [Math.min(...integers), Math.max(...integers), new Set(integers).size, crypto.randomInt(1)],
          integer: Number.isInteger(await promisify(crypto.randomInt)(5, 9)),
          uuids: [crypto.randomUUID(), globalThis.crypto.randomUUID()].map((one) => uuid.test(one)),
          values: globalThis.crypto.getRandomValues(new Uint32Array(8)).some((one) => one !== 0),
          named: [crypto.randomBytes.name, crypto.randomBytes.length, crypto.getRandomValues(new Uint8Array(2)).length],
          refused: [
            refused(() => crypto.randomBytes(-1)),
            refused(() => crypto.randomBytes(4, 5)),
            refused(() => crypto.randomInt(5, 1)),
            refused(() => crypto.randomFillSync(view, 9)),
            refused(() => globalThis.crypto.getRandomValues(new Float32Array(1))),
            refused(() => globalThis.crypto.getRandomValues.call({}, new Uint8Array(1))),
          ],
        };`),
    ).toEqual({
      bytes: [70_000, 5],
      filled: [0, 0, 0],
      later: true,
      buffer: true,
      integers: [-3, 2, 6, 0],
      integer: true,
      uuids: [true, true],
      values: true,
      named: ["randomBytes", 2, 2],
      refused: ["ERR_OUT_OF_RANGE", "ERR_INVALID_ARG_TYPE", "ERR_OUT_OF_RANGE", "ERR_OUT_OF_RANGE", 17, "ERR_INVALID_THIS"],
    });
  });

  it("give Math.random numbers that are spread evenly, and others after a new seed", async () => {
    const { counts, outside, repeated } = (await run(`
        const counts = Array(10).fill(0);
        let outside = 0;
        const seen = new Set();
        for (let n = 0; n < 100_000; n++) {
          if (n % 1000 === 0) numbers.reseed();
          const number = Math.random();
          seen.add(number);
          if (!(number >= 0 && number < 1)) outside++;
          counts[Math.floor(number * 10)]++;
        }
        return { counts, outside, repeated: 100_000 - seen.size };`)) as { counts: number[]; outside: number; repeated: number };
    expect([outside, repeated]).toEqual([0, 0]);
    // Ten standard deviations.
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(950);
  });
});
