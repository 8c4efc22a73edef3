import { Agent, type RequestOptions, request } from "node:http";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AGENT_KEY, ID, openGateway, responseOf, textOf } from "../fixtures/gateway.ts";

/** What a path may consist of, with the pieces that readers of paths disagree about. */
const piece = fc.constantFrom(
  ...["/", "//", "mcp", "weather", "fork", "fork-spec", ".", "..", "\\", "?", "?a=//b", "#", ";a"],
  ...["%2f", "%2F", "%5c", "%2e", "%2E%2e", "%252f", "%66ork", "%20", "%zz", "%"],
);
const start = fc.constantFrom(
  "",
  "/",
  `/env-instance/${ID}`,
  `//env-instance/${ID}`,
  `/agent/${AGENT_KEY}`,
  "/port/unknown",
  "/env-service/tools",
);

it("answers every path alike on both paths, and passes none on that two readers may split differently", { timeout: 60_000 }, async () => {
  const seen: string[] = [];
  await using gateway = await openGateway((received, response) => {
    seen.push(received.url ?? "");
    response.end("passed on");
  });
  const agent = new Agent({ keepAlive: true });
  const ask = async (path: string, options: RequestOptions) => {
    seen.length = 0;
    const sent = request(gateway.url, { path, headers: { "aenvcore-envinstance-id": ID, "x-request-id": "same" }, ...options });
    sent.end();
    const answer = await responseOf(sent);
    return { status: answer.statusCode, text: await textOf(answer), seen: [...seen] };
  };
  let passed = 0;
  const path = fc
    .tuple(start, fc.array(piece, { maxLength: 5 }))
    .map(([first, rest]) => `/${`${first}${rest.join("")}`.replace(/^\//, "")}`);
  await fc.assert(
    fc.asyncProperty(path, async (path) => {
      const [fast, regular] = [await ask(path, { agent }), await ask(path, { agent: false })];
      expect(fast).toEqual(regular);
      for (const url of fast.seen) {
        passed++;
        const [sandboxPath = ""] = url.replace(`/env-instance/${ID}`, "").split("?");
        expect(sandboxPath).not.toMatch(/\/\/|\\|%(?:25)*(?:2f|5c|2e)/i);
      }
    }),
    {
      numRuns: 500,
      examples: [[`/env-instance/${ID}/mcp`], ["//mcp"], ["/%2f"], [`/env-instance/${ID}//mcp`], [`/env-instance/${ID}/%2f`]],
    },
  );
  expect(passed).toBeGreaterThan(0);
  agent.destroy();
});
