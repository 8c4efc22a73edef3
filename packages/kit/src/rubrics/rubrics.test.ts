import { isPlatformError, type Json } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileEnvironment } from "../compile/environment.ts";
import { defineEnvironment, type PathStep, type RewardContext, type RewardDefinition } from "../definition/definition.ts";
import { choiceAnswer } from "./choice.ts";
import { exactAnswer } from "./exact.ts";
import { jsonAnswer } from "./json.ts";
import { numericAnswer } from "./numeric.ts";
import { pathTaken } from "./path-taken.ts";
import { patternAnswer } from "./pattern.ts";

const base = { name: "r" };

async function scored(definition: RewardDefinition<never>, path: readonly PathStep[], task: Json = null): Promise<number> {
  return (await definition.score({ path, task } as unknown as RewardContext<never>)) as number;
}

/** The score of an agent that says this at the end. */
const score = (definition: RewardDefinition<never>, answer: string, task?: Json) =>
  scored(definition, [{ say: "hm" }, { say: answer }], task);

async function problemOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    expect(isPlatformError(error, "environment.invalid", "reward.failed")).toBe(true);
    return (error as Error).message;
  }
  throw new Error("it was accepted");
}

describe("exactAnswer", () => {
  const oslo = exactAnswer({ ...base, expected: "Oslo" });
  const lenient = exactAnswer({ ...base, expected: ["São Paulo", "Straße"], ignore: ["case", "accents", "punctuation", "spaces"] });

  it.each<[RewardDefinition<never>, string, number]>([
    [oslo, "Oslo", 1],
    [oslo, " Oslo\n", 1],
    [oslo, "oslo", 0],
    [oslo, "Oslo.", 0],
    [oslo, "Oslo, Bergen, Rome", 0],
    [oslo, "It is Oslo", 0],
    [oslo, "", 0],
    [oslo, "\u200b", 0],
    [lenient, "sao  paulo!", 1],
    [lenient, "SÃO PAULO", 1],
    [lenient, "sa\u0303o paulo", 1],
    [lenient, "STRASSE", 1],
    [lenient, "saopaulo", 0],
    [lenient, "?!", 0],
  ])("%#: the answer %j scores %j", async (definition, answer, expected) => {
    expect(await score(definition, answer)).toBe(expected);
  });

  it("accepts every text as itself, and nothing that differs after normalisation", async () => {
    const text = fc.string({ unit: "grapheme", minLength: 1 }).filter((one) => /[\p{L}\p{N}]/u.test(one));
    await fc.assert(
      fc.asyncProperty(text, text, fc.subarray(["case", "spaces", "accents"] as const), async (expected, other, ignore) => {
        const definition = exactAnswer({ ...base, expected, ignore });
        expect(await score(definition, `  ${expected}\n`)).toBe(1);
        expect(await score(definition, `${expected} ${other}`)).toBe(0);
      }),
    );
  });

  it.each([
    [{ ...base, expected: "" }, "must be a text that has a character which counts"],
    [{ ...base, expected: " \u200b" }, "must be a text that has a character which counts"],
    [{ ...base, expected: "?!", ignore: ["punctuation"] }, "must be a text that has a character which counts"],
    [{ ...base, expected: [] }, "an empty list"],
    [{ ...base, expected: 3 }, "'expected' is 3"],
    [{ ...base, expected: "a", ignore: ["colour"] }, "'ignore' has \"colour\"; it is a list of case, spaces, punctuation, accents"],
    [{ ...base, expected: "a", ignores: ["case"] }, "exactAnswer 'r': unknown option 'ignores'; did you mean 'ignore'?"],
    [{ ...base, expected: "a", from: "end" }, "'from' is \"end\""],
    [{ ...base, expected: "a", from: { after: " " } }, "'from' is an object"],
    [{ ...base, expected: "a", from: { tag: "a b" } }, "'from' is an object"],
  ])("%#: refuses wrong options when the environment loads", async (options, problem) => {
    expect(await problemOf(() => exactAnswer(options as never))).toContain(problem);
  });

  it("gives no score, and no zero, to a task without an expected value, whatever the answer", async () => {
    const definition = exactAnswer({ ...base, expected: ({ task }) => (task as { right?: string } | null)?.right as string });
    expect(await score(definition, "Oslo", { right: "Oslo" } as never)).toBe(1);
    for (const answer of ["Oslo", "undefined", ""])
      expect(await problemOf(() => score(definition, answer))).toContain("'expected' is undefined");
  });
});

describe("the place of an answer", () => {
  const after = exactAnswer({ ...base, expected: "4", from: { after: "####" } });
  const tag = exactAnswer({ ...base, expected: "4", from: { tag: "answer" } });
  const boxed = exactAnswer({ ...base, expected: "\\frac{1}{2}", from: "boxed" });

  it.each<[RewardDefinition<never>, string, number]>([
    [after, "2 + 2\n#### 4\nbye", 1],
    [after, "#### 4\n#### 5", 0],
    [after, "#### 5\n#### 4", 1],
    [after, "4", 0],
    [after, "####", 0],
    [tag, "<answer>3</answer> no: <answer> 4 </answer>", 1],
    [tag, "<answer>4</answer><answer>3</answer>", 0],
    [tag, "<answer>4", 0],
    [tag, "</answer>4<answer>", 0],
    [tag, "<answer><answer>4</answer>", 1],
    [boxed, "so $\\boxed{\\frac{1}{2}}$.", 1],
    [boxed, "\\boxed{\\frac{1}{2}", 0],
    [boxed, "\\boxed{3} \\boxed{\\frac{1}{2}}", 1],
  ])("%#: holds one answer: %j scores %j", async (definition, answer, expected) => {
    expect(await score(definition, answer)).toBe(expected);
  });

  it("is what the agent said last, and nothing scores 0", async () => {
    const definition = exactAnswer({ ...base, expected: "4" });
    expect(definition.path).toBe(true);
    const call = { tool: "say", arguments: { text: "4" }, isError: false };
    expect(await scored(definition, [])).toBe(0);
    expect(await scored(definition, [call])).toBe(0);
    expect(await scored(definition, [{ say: "4" }, call])).toBe(1);
    expect(await scored(definition, [{ say: "4" }, { say: "5" }])).toBe(0);
  });

  it("can be the state, of any kind of data", async () => {
    for (const [answer, expected] of [
      ["4", 1],
      [4, 1],
      [4n, 1],
      [null, 0],
      [undefined, 0],
      [[4], 0],
      [{ 4: 4 }, 0],
    ] as const) {
      const definition = exactAnswer({ ...base, expected: "4", answer: () => answer });
      expect(definition.path).toBeUndefined();
      expect(await scored(definition, [])).toBe(expected);
    }
    expect(await problemOf(() => scored(exactAnswer({ ...base, expected: "4", answer: () => (() => 4) as never }), []))).toContain(
      "'answer' returned",
    );
  });

  it("is not a text of millions of characters", async () => {
    const long = `${" ".repeat(1_000_001)}4`;
    for (const definition of [exactAnswer({ ...base, expected: "4" }), numericAnswer({ ...base, expected: 4, from: "last" })])
      expect(await score(definition, long)).toBe(0);
  });
});

describe("numericAnswer", () => {
  it.each<[Partial<Parameters<typeof numericAnswer>[0]> & { expected: number | bigint | string }, string, number]>([
    [{ expected: 42 }, "42", 1],
    [{ expected: 42 }, " 42. ", 1],
    [{ expected: 42 }, "+42.00", 1],
    [{ expected: 42 }, "4.2e1", 1],
    [{ expected: 42 }, "84/2", 1],
    [{ expected: 42 }, "42 or 43", 0],
    [{ expected: 42 }, "0 1 2 42", 0],
    [{ expected: 42 }, "forty-two", 0],
    [{ expected: 42 }, "0x2a", 0],
    [{ expected: 42 }, "42km", 0],
    [{ expected: 42, units: ["km", "m"] }, "42 km", 1],
    [{ expected: -5, units: ["$"] }, "-$5", 1],
    [{ expected: -5 }, "\u22125", 1],
    [{ expected: 1234567.5 }, "1,234,567.5", 1],
    [{ expected: 1234 }, "12,34", 0],
    [{ expected: 0.3 }, "0.30", 1],
    [{ expected: 0.3 }, "0.30000000000000004", 0],
    [{ expected: 1 }, "0.9999999999999999999999", 0],
    [{ expected: "9007199254740993" }, "9007199254740992", 0],
    [{ expected: 9007199254740993n }, "9007199254740993", 1],
    [{ expected: 10, tolerance: 0.5 }, "10.5", 1],
    [{ expected: 10, tolerance: 0.5 }, "10.500000000000000001", 0],
    [{ expected: 200, tolerance: { relative: 0.01 } }, "198", 1],
    [{ expected: 200, tolerance: { relative: 0.01 } }, "197.9", 0],
    [{ expected: 0, tolerance: { relative: 0.5 } }, "0.1", 0],
    [{ expected: 1, tolerance: { absolute: 2, relative: 0.1 } }, "3", 1],
    [{ expected: 1 }, "Infinity", 0],
    [{ expected: 1 }, "NaN", 0],
    [{ expected: 1 }, "1/0", 0],
    [{ expected: 1 }, "1e99999999", 0],
    [{ expected: 1 }, "9".repeat(1_000), 0],
    [{ expected: 7, from: "last" }, "3 and 4 make 7.", 1],
    [{ expected: 7, from: "last" }, "7 is 3 and 4", 0],
    [{ expected: -7, from: "last" }, "x = -7", 1],
    [{ expected: 4, from: "last" }, "3-4", 1],
    [{ expected: 0.75, from: "last" }, "it is 3/4, I think", 1],
    [{ expected: 1234, from: "last" }, "**1,234**", 1],
    [{ expected: 7, from: "last" }, "none", 0],
  ])("%#", async (options, answer, expected) => {
    expect(await score(numericAnswer({ ...base, ...options }), answer)).toBe(expected);
  });

  it("agrees with arithmetic on whole numbers, for every tolerance", async () => {
    const whole = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
    await fc.assert(
      fc.asyncProperty(whole, whole, fc.nat(1_000), async (expected, answer, tolerance) => {
        const difference = expected > answer ? expected - answer : answer - expected;
        const definition = numericAnswer({ ...base, expected, tolerance });
        expect(await score(definition, String(answer))).toBe(difference <= BigInt(tolerance) ? 1 : 0);
        expect(await score(definition, `${expected}.0`)).toBe(1);
      }),
    );
  });

  it("accepts every finite number as JavaScript writes it, and no other within half of its last digit", async () => {
    await fc.assert(
      fc.asyncProperty(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.double({ noNaN: true }), async (expected, other) => {
        const definition = numericAnswer({ ...base, expected });
        expect(await score(definition, String(expected))).toBe(1);
        expect(await score(definition, String(other))).toBe(Object.is(expected, other) || expected === other ? 1 : 0);
      }),
    );
  });

  it.each([
    [{ expected: Number.NaN }, "'expected' is NaN; it must be a finite number"],
    [{ expected: "many" }, "'expected' is \"many\""],
    [{ expected: null }, "'expected' is null"],
    [{ expected: 1, tolerance: -1 }, "'tolerance' is -1; it must be a number of at least 0"],
    [{ expected: 1, tolerance: "0.1" }, "'tolerance' is \"0.1\""],
    [{ expected: 1, tolerance: { percent: 1 } }, "'tolerance' has 'percent'"],
    [{ expected: 1, units: ["m2"] }, "'units' must be a list of texts without digits"],
  ])("%#: refuses wrong options", async (options, problem) => {
    expect(await problemOf(() => numericAnswer({ ...base, ...options } as never))).toContain(problem);
  });
});

describe("patternAnswer", () => {
  it.each<[RegExp, "whole" | "anywhere", string, number]>([
    [/\d{4}/, "whole", "2026", 1],
    [/\d{4}/, "whole", "in 2026", 0],
    [/\d{4}/m, "whole", "2026\n1999", 0],
    [/^\d{4}$/m, "anywhere", "x\n2026", 1],
    [/a|b/, "whole", "ab", 0],
    [/(?<year>\d+)-\k<year>/, "whole", "12-12", 1],
    [/ok/gy, "anywhere", "ok", 1],
  ])("%#: %s on the %s answer %j scores %j", async (pattern, match, answer, expected) => {
    const definition = patternAnswer({ ...base, pattern, match });
    // Twice: a pattern with a position would give another answer.
    expect([await score(definition, answer), await score(definition, answer)]).toEqual([expected, expected]);
  });

  it("gives no score if the pattern needs exponential time, and does not block for longer than its limit", async () => {
    const definition = patternAnswer({ ...base, pattern: /(a+)+b/ });
    const from = performance.now();
    expect(await problemOf(() => score(definition, "a".repeat(50)))).toContain("needs more than 250 ms for this answer");
    // Generous: other tests run at the same time.
    expect(performance.now() - from).toBeLessThan(10_000);
    expect(await score(definition, "aab")).toBe(1);
  });

  it.each([
    [{ pattern: "a+" }, "'pattern' is \"a+\"; it must be a regular expression"],
    [{ pattern: /a*/, match: "anywhere" }, "which is found in every answer"],
    [{ pattern: /a/, match: "part" }, "'match' is \"part\""],
  ])("%#: refuses wrong options", async (options, problem) => {
    expect(await problemOf(() => patternAnswer({ ...base, ...options } as never))).toContain(problem);
  });
});

describe("choiceAnswer", () => {
  const letters = choiceAnswer({ ...base, choices: ["A", "B", "C", "D"], expected: "B" });
  const cities = choiceAnswer({ ...base, choices: { A: "Oslo", B: "New York", C: "Rome" }, expected: "B" });

  it.each<[RewardDefinition<never>, string, number]>([
    ...["B", "b", " (B) ", "B.", "B)", "**B**", '"B"', "Answer: B", "The answer is B.", "the answer is (B), as computed"].map(
      (answer) => [letters, answer, 1] as never,
    ),
    ...["My reasoning: A is too small. The answer is **B**", "Answer: B\nAnswer: B", "answer = B", "The answer is B, not C."].map(
      (answer) => [letters, answer, 1] as never,
    ),
    ...["A, B, C, D", "A B", "B or C", "The answer is B or C", "Answer: B, C", "Answer: B/C", "Answer: B C", "Answer: A. Answer: B."].map(
      (answer) => [letters, answer, 0] as never,
    ),
    ...["C", "I do not know", "Bergen", "The answer is not B", "The answer is between us", "", "()"].map(
      (answer) => [letters, answer, 0] as never,
    ),
    ...["New York", "new  york.", "B. New York", "B) New York", "(B) New York", "B: new york", "The answer is B"].map(
      (answer) => [cities, answer, 1] as never,
    ),
    ...["A. New York", "Oslo New York", "York", "B. Oslo", "The answer is a city, New York"].map((answer) => [cities, answer, 0] as never),
  ])("%#: the answer %j scores %j", async (definition, answer, expected) => {
    expect(await score(definition, answer)).toBe(expected);
  });

  it("never counts an answer that names two labels as a statement", async () => {
    const label = fc.constantFrom("A", "B", "C", "D");
    await fc.assert(
      fc.asyncProperty(
        label,
        label,
        fc.constantFrom(", ", " or ", "/", " and ", " ", "\nAnswer: ", ". The answer is "),
        async (one, other, between) => {
          fc.pre(one !== other);
          expect(await score(letters, `Answer: ${one}${between}${other}`)).toBe(0);
        },
      ),
    );
  });

  it("takes time proportional to the answer", async () => {
    const from = performance.now();
    for (const text of [
      `answer${" ".repeat(900_000)}`,
      "answer ".repeat(100_000),
      `${")".repeat(900_000)}x`,
      "answer is (((((((( ".repeat(40_000),
    ])
      expect(await score(letters, text)).toBe(0);
    expect(performance.now() - from).toBeLessThan(20_000);
  });

  it.each([
    [{ choices: ["A"], expected: "A" }, "two or more labels"],
    [{ choices: ["A", "A"], expected: "A" }, '"a" for two choices'],
    [{ choices: { A: "B", B: "A" }, expected: "A" }, "for two choices"],
    [{ choices: { A: "x", B: "" }, expected: "A" }, "an empty text"],
    [{ choices: ["A", "(B)"], expected: "A" }, "a label has 1 to 20 letters and digits"],
    [{ choices: ["A", "B"], expected: "b" }, "'expected' is \"b\"; it must be one of A, B"],
  ])("%#: refuses wrong options", async (options, problem) => {
    expect(await problemOf(() => choiceAnswer({ ...base, ...options } as never))).toContain(problem);
  });
});

describe("jsonAnswer", () => {
  const order = jsonAnswer({ ...base, expected: { "/status": "sent", "/items/1/count": 2, "/a~1b/~0": null }, score: "share" });

  it.each<[RewardDefinition<never>, string, number]>([
    [order, '{"status":"sent","items":[0,{"count":2.0}],"a/b":{"~":null}}', 1],
    [order, '{"status":"sent","items":[{"count":2}]}', 1 / 3],
    [order, '```json\n{"status":"sent"}\n```', 1 / 3],
    [order, 'Here: {"status":"sent"}', 0],
    [order, "{", 0],
    [order, "[".repeat(100_000), 0],
    [jsonAnswer({ ...base, expected: { "": { b: [1, 2], a: 1 } } }), '{"a":1,"b":[1,2]}', 1],
    [jsonAnswer({ ...base, expected: { "": [1, 2] } }), "[2,1]", 0],
    [jsonAnswer({ ...base, expected: { "": [1, 2] } }), "[1,2,3]", 0],
    [jsonAnswer({ ...base, expected: { "": {} } }), '{"__proto__":1}', 0],
    [jsonAnswer({ ...base, expected: { "/constructor/name": "Object" } }), "{}", 0],
    [jsonAnswer({ ...base, expected: { "/length": 2 } }), "[1,2]", 0],
    [jsonAnswer({ ...base, expected: { "/0": 1 } }), "[1]", 1],
    [jsonAnswer({ ...base, expected: { "/00": 1 } }), "[1]", 0],
    [jsonAnswer({ ...base, expected: { "/n": 0.3 }, tolerance: 1e-9 }), '{"n":0.30000000000000004}', 1],
    [jsonAnswer({ ...base, expected: { "/n": 0.3 } }), '{"n":0.30000000000000004}', 0],
    [jsonAnswer({ ...base, expected: { "/a": 1, "/b": 2 } }), '{"a":1}', 0],
    [jsonAnswer({ ...base, expected: { "/a": null } }), "{}", 0],
  ])("%#: the answer %j scores %j", async (definition, answer, expected) => {
    expect(await score(definition, answer)).toBe(expected);
  });

  it("accepts every JSON value as itself in any order of members, and no other", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (value, other) => {
        const definition = jsonAnswer({ ...base, expected: { "": value } });
        expect(await score(definition, JSON.stringify(value, null, 1))).toBe(1);
        const isSame = JSON.stringify(value) === JSON.stringify(other);
        if (!isSame && JSON.stringify(value).length !== JSON.stringify(other).length)
          expect(await score(definition, JSON.stringify(other))).toBe(0);
      }),
    );
  });

  it("takes an answer that is data already", async () => {
    expect(await scored(jsonAnswer({ ...base, expected: { "/a": [1] }, answer: () => ({ a: [1] }) }), [])).toBe(1);
  });

  it.each([
    [{ expected: {} }, "it must be an object with a value for each path"],
    [{ expected: { status: 1 } }, "'status' is no JSON Pointer"],
    [{ expected: { "/a~2": 1 } }, "is no JSON Pointer"],
    [{ expected: { "/a": undefined } }, "the expected value at '/a' is undefined"],
    [{ expected: { "/a": 1 }, tolerance: -1 }, "'tolerance' is -1"],
    [{ expected: { "/a": 1 }, score: "some" }, "'score' is \"some\""],
  ])("%#: refuses wrong options", async (options, problem) => {
    expect(await problemOf(() => jsonAnswer({ ...base, ...options } as never))).toContain(problem);
  });
});

describe("pathTaken", () => {
  const call = (tool: string, args: Record<string, unknown> = {}, isError = false) => ({ tool, arguments: args, isError });
  const path = [
    call("quote", { city: "Oslo" }),
    { say: "pay?" },
    call("pay", { amount: 5 }, true),
    call("pay", { amount: 5, note: "x" }),
    call("quote"),
  ];

  it.each<[Omit<Parameters<typeof pathTaken>[0], "name">, readonly PathStep[], number]>([
    [{ called: ["quote", "pay"] }, path, 1],
    [{ called: ["refund"] }, path, 0],
    [{ called: ["quote"] }, [], 0],
    [{ called: ["pay"] }, [call("pay", {}, true)], 0],
    [{ called: [{ tool: "pay", times: 1 }] }, path, 1],
    [{ called: [{ tool: "quote", times: 1 }] }, path, 0],
    [{ called: [{ tool: "quote", times: { min: 2, max: 3 } }] }, path, 1],
    [{ called: [{ tool: "quote", times: { min: 3 } }] }, path, 0],
    [{ called: [{ tool: "pay", arguments: { amount: 5 } }] }, path, 1],
    [{ called: [{ tool: "pay", arguments: { amount: "5" } }] }, path, 0],
    [{ called: [{ tool: "quote", arguments: { city: "Oslo" }, times: 1 }] }, path, 1],
    [{ called: [{ tool: "pay", arguments: ({ amount }) => Number(amount) < 9 }] }, path, 1],
    [{ called: [{ tool: "quote", arguments: { constructor: Object } }] }, path, 0],
    [{ order: ["quote", "pay"] }, path, 1],
    [{ order: ["pay", "quote"] }, path, 1],
    [{ order: ["pay", "pay"] }, path, 0],
    [{ order: ["quote", "pay", "quote", "pay"], score: "share" }, path, 3 / 4],
    [{ called: ["refund"], order: ["quote"], score: "share" }, path, 1 / 2],
    [{ called: ["quote"], never: ["delete"] }, path, 1],
    [{ called: ["quote"], never: ["pay"], score: "share" }, path, 0],
    [{ never: ["delete"] }, [call("delete", {}, true)], 0],
    [{ never: [{ tool: "pay", arguments: { amount: 5 } }] }, path, 0],
    [{ never: [{ tool: "pay", arguments: { amount: 6 } }] }, path, 1],
    [{ most: 4, called: ["pay"] }, path, 1],
    [{ most: 3, called: ["pay"] }, path, 0],
  ])("%#: %j", async (options, taken, expected) => {
    expect(await scored(pathTaken({ ...base, ...options }), taken)).toBe(expected);
  });

  it("finds an order exactly if it is a subsequence of the calls that succeeded", async () => {
    const tool = fc.constantFrom("a", "b", "c");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(tool, fc.boolean())), fc.array(tool, { minLength: 1, maxLength: 4 }), async (calls, order) => {
        const made = calls
          .filter(([, isError]) => !isError)
          .map(([name]) => name)
          .join("");
        const isFound = new RegExp(order.join(".*")).test(made);
        const taken = calls.map(([name, isError]) => call(name, {}, isError));
        expect(await scored(pathTaken({ ...base, order }), taken)).toBe(isFound ? 1 : 0);
      }),
    );
  });

  it("takes what to check from the task, and gives no score if that is nothing", async () => {
    const definition = pathTaken({ ...base, called: ({ task }) => (task as unknown as { calls: string[] }).calls });
    expect(await scored(definition, path, { calls: ["pay"] })).toBe(1);
    expect(await problemOf(() => scored(definition, path, { calls: [] }))).toContain("it checks nothing in this episode");
    expect(await problemOf(() => scored(definition, path, { calls: "pay" }))).toContain("'called' is \"pay\"; it must be a list");
  });

  it.each([
    [{}, "it checks nothing"],
    [{ called: [{ tools: "pay" }] }, "'called' has an object; each is the name of a tool"],
    [{ called: [{ tool: "pay", args: {} }] }, "a call with 'args'; a call has tool, arguments and times"],
    [{ called: [{ tool: "pay", times: 0 }] }, "'times' is 0; it must be a whole number above 0"],
    [{ called: [{ tool: "pay", times: { min: 3, max: 2 } }] }, "with min <= max"],
    [{ order: [{ tool: "pay", times: 2 }] }, "which only 'called' has"],
    [{ called: ["pay"], most: -1 }, "'most' is -1"],
    [{ called: ["pay"], score: "some" }, "'score' is \"some\""],
  ])("%#: refuses wrong options", async (options, problem) => {
    expect(await problemOf(() => pathTaken({ ...base, ...options } as never))).toContain(problem);
  });
});

describe("with roles", () => {
  const path: readonly PathStep[] = [
    { tool: "bet", arguments: {}, isError: false, role: "white" },
    { tool: "fold", arguments: {}, isError: false, role: "black" },
    { say: "4", role: "white" },
    { say: "5", role: "black" },
  ];
  const forRole = async (definition: RewardDefinition<never>, role: string | null) =>
    definition.score({ path, role, task: null } as unknown as RewardContext<never>);

  it("a reward sees the calls and the words of its own role, and one of all roles sees all", async () => {
    const bet = pathTaken({ ...base, called: ["bet"], never: ["fold"] });
    expect([await forRole(bet, "white"), await forRole(bet, "black"), await forRole(bet, null)]).toEqual([1, 0, 0]);
    const four = numericAnswer({ ...base, expected: 4 });
    expect([await forRole(four, "white"), await forRole(four, "black"), await forRole(four, null)]).toEqual([1, 0, 0]);
  });
});

describe("a ready-made reward", () => {
  const environmentWith = (tolerance: number) =>
    defineEnvironment({
      setup: () => ({ answer: null as number | null }),
      tools: [{ name: "answer", run: (_, { state }) => Object.assign(state, { answer: 4 }) }],
      rewards: [
        numericAnswer({
          name: "right",
          expected: 4,
          tolerance,
          answer: ({ state }) => state.answer,
          weight: 0.8,
          description: "The number.",
        }),
        { name: "own", score: ({ state }) => (state.answer === null ? 0 : 1) },
      ],
    });

  it("stands beside an author's own, with the type of the state", async () => {
    const { rewards, catalogue } = await compileEnvironment(environmentWith(0) as never, { name: "e", version: "1.0.0" });
    expect(rewards.map(({ definition: { name }, weight }) => [name, weight])).toEqual([
      ["right", 0.8],
      ["own", 1],
    ]);
    expect(catalogue.reward[0]).toMatchObject({ name: "right", description: "The number." });
  });

  it("has another digest with other options", async () => {
    const digestOf = async (tolerance: number) =>
      (await compileEnvironment(environmentWith(tolerance) as never, { name: "e", version: "1.0.0" })).abilities.rewardDigest;
    expect(await digestOf(0)).toBe(await digestOf(0));
    expect(await digestOf(0)).not.toBe(await digestOf(0.1));
  });
});
