import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readRewards, scalarReward } from "./rewards.ts";

const json = (content: string, text: string | null = null) => readRewards({ json: content, text });
const text = (content: string) => readRewards({ json: null, text: content });

describe("rewards", () => {
  it("are read from reward.json before reward.txt", () => {
    expect(json('{"reward": 1, "speed": 0.5}', "0")).toEqual({ ok: true, rewards: { reward: 1, speed: 0.5 }, integers: ["reward"] });
    expect(text("1\n")).toEqual({ ok: true, rewards: { reward: 1 }, integers: [] });
  });

  it("take the missing key from reward.txt if that can be read", () => {
    expect(json('{"speed": 2}', "0.5")).toMatchObject({ rewards: { speed: 2, reward: 0.5 } });
    expect(json('{"speed": 2}', "garbage")).toMatchObject({ rewards: { speed: 2 } });
    expect(json("{}")).toMatchObject({ ok: true, rewards: {} });
  });

  it("that are missing, empty or garbage are errors, never 0", () => {
    expect(readRewards({ json: null, text: null })).toMatchObject({ error: "RewardFileNotFoundError" });
    expect(json("", "1")).toMatchObject({ error: "RewardFileEmptyError" });
    expect(text("")).toMatchObject({ error: "RewardFileEmptyError" });
    for (const content of ["nan", "inf", "1_000", "true", "0x1", "\ufeff1", "1 2", " ", "1e999", "١"]) {
      expect(text(content), content).toMatchObject({ error: "VerifierOutputParseError" });
    }
    for (const content of [
      "null",
      "[]",
      "1",
      '"x"',
      "{bad",
      '{"a":true}',
      '{"a":"1"}',
      '{"a":null}',
      '{"a":NaN}',
      '{"a":1e999}',
      '{"a":{}}',
      " ",
    ]) {
      expect(json(content), content).toMatchObject({ error: "VerifierOutputParseError" });
    }
  });

  it("lose other values if the run is lenient", () => {
    expect(readRewards({ json: '{"a": 1, "b": "x"}', text: null }, { lenient: true })).toMatchObject({ rewards: { a: 1 } });
  });

  it("are any finite number", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const written = text(` ${String(value)}\n`);
        return written.ok && written.rewards.reward === value;
      }),
    );
    fc.assert(fc.property(fc.string(), (content) => typeof text(content).ok === "boolean" && typeof json(content).ok === "boolean"));
  });

  it("have one number, as Harbor chooses it: the key reward, or the first key", () => {
    // before: several rewards without the key `reward` had none, so that the episode was unscored.
    expect([{ a: 0, reward: 1 }, { a: 0.5 }, { b: 0.25, a: 1 }, {}, null].map(scalarReward)).toEqual([1, 0.5, 0.25, null, null]);
  });
});
