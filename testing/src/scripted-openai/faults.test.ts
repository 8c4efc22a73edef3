import { describe, expect, it } from "vitest";
import { faulty, type ModelFault, modelFaults } from "./faults.ts";
import { scriptedOpenAi } from "./server.ts";

const answer = () => "a rather long answer that can be cut in two";

async function ask(baseUrl: string, seed: number, init: RequestInit = {}): Promise<Response> {
  return fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer key" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello" }], seed }),
    ...init,
  });
}

/** The fault of each request, or none, in this order of seeds. */
async function faultsOf(seeds: readonly number[]): Promise<Map<number, string[]>> {
  const found = new Map<number, string[]>();
  let last: ModelFault | "none" = "none";
  const script = faulty(answer, { seed: 1, share: 0.5, onFault: (fault) => (last = fault) });
  if (typeof script !== "function") throw new Error("the script is a function");
  for (const seed of seeds) {
    last = "none";
    await script({ body: { seed }, turn: 0, tools: [] } as never);
    found.set(seed, [...(found.get(seed) ?? []), last]);
  }
  return found;
}

describe("a faulty script", () => {
  it("has the same faults for the same requests in any order, and others when a request is repeated", async () => {
    const seeds = Array.from({ length: 200 }, (_, at) => at % 50);
    const some = await faultsOf(seeds);
    const others = await faultsOf(seeds.toReversed());
    expect([...others].sort(([a], [b]) => a - b)).toEqual([...some]);
    expect(new Set([...some.values()].flat())).toEqual(new Set(["none", ...modelFaults]));
  });
});

describe("a fault of the connection", () => {
  it("cuts the answer in two", async () => {
    await using model = await scriptedOpenAi(() => ({ fault: "cut", answer: answer() }));
    const response = await ask(model.baseUrl, 0);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  it("never answers", async () => {
    const gone = new AbortController();
    await using model = await scriptedOpenAi(() => {
      gone.abort();
      return { fault: "silent" };
    });
    await expect(ask(model.baseUrl, 0, { signal: gone.signal })).rejects.toThrow("aborted");
  });
});
