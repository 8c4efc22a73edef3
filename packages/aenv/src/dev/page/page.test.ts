import { createHash } from "node:crypto";
import { request } from "node:http";
import { defineEnvironment, type Served, serve } from "@aenv/kit";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { answerPage } from "./answer.ts";
import { escaped } from "./html.ts";
import { STYLE } from "./style.ts";

const environment = defineEnvironment({
  setup: () => ({ total: 0 }),
  tasks: () => [{ id: "first", instruction: 'Say "<b>hi</b>".' }],
  tools: [
    {
      name: "add",
      description: "Adds </script><script>alert(1)</script>.",
      input: z.object({
        n: z.number(),
        mood: z.enum(["calm", "loud"]).optional(),
        isLoud: z.boolean().optional(),
        more: z.array(z.number()).optional(),
      }),
      run: ({ n }, { state }) => (state.total += n),
    },
  ],
  functions: [{ name: "clear", run: (_, { state }) => (state.total = 0) }],
  rewards: [{ name: "reached", score: ({ state }) => state.total }],
});

let served: Served;
let body: string;
let headers: Headers;
beforeAll(async () => {
  served = await serve(environment, { name: "adder", version: "1.0.0", port: 0, homePage: answerPage });
  const answer = await fetch(`${served.url}/`);
  headers = answer.headers;
  body = await answer.text();
});
afterAll(() => served.close());

describe("the page at /", () => {
  it("shows name, version, tools, tasks, functions, rewards and the addresses", () => {
    for (const text of ["adder", "@1.0.0", ">add</h3>", "<code>first</code>", "<code>clear</code>", "<code>reached</code>"])
      expect(body).toContain(text);
    expect(body).toContain(`<code>${served.url}/mcp</code>`);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  });

  it("has one labelled field of the right kind for each argument", () => {
    expect(body).toMatch(/<label for="tool-0-0">n.*\n<input type="number" step="any" id="tool-0-0" name="n" data-kind="number" required/);
    expect(body).toMatch(
      /<select id="tool-0-1" name="mood" data-kind="choice"><option value=""><\/option><option value="&quot;calm&quot;">calm/,
    );
    expect(body).toMatch(/<select id="tool-0-2" name="isLoud" data-kind="boolean">/);
    expect(body).toMatch(/<textarea rows="2" placeholder="JSON" id="tool-0-3" name="more" data-kind="json">/);
  });

  it("escapes everything that comes from the environment", () => {
    expect(body).toContain("Adds &lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;.");
    expect(body).toContain("Say &quot;&lt;b&gt;hi&lt;/b&gt;&quot;.");
    expect(body.match(/<script>/g)).toHaveLength(1);
  });

  it("allows only its own script and style: its policy has their hashes", () => {
    const policy = headers.get("content-security-policy") ?? "";
    for (const tag of ["script", "style"]) {
      const [, text = ""] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(body) ?? [];
      expect(policy).toContain(`${tag}-src 'sha256-${createHash("sha256").update(text).digest("base64")}';`);
    }
    expect(policy).toMatch(/^default-src 'none';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:/);
    expect(body).not.toMatch(/<link|<img|<iframe|@import|url\(| src=|\son\w+=/);
  });

  it("has a form whose endpoint answers the script's request without a session", async () => {
    const answer = await fetch(`${served.url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
        origin: served.url,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "add", arguments: { n: 3 } } }),
    });
    expect(await answer.text()).toContain('"text":"3"');
  });

  it("refuses a host name that is not this machine's, as in DNS rebinding", async () => {
    const status = await new Promise((resolve, reject) => {
      request(`${served.url}/`, { headers: { host: "evil.example" } }, ({ statusCode }) => resolve(statusCode))
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
  });

  it("is not served without the option", async () => {
    await using plain = await serve(environment, { name: "adder", port: 0 });
    expect((await fetch(`${plain.url}/`)).status).toBe(404);
  });

  it("is served when the tasks cannot be listed, and shows the reason", async () => {
    const broken = defineEnvironment({
      tasks: () => {
        throw new Error("no <data> yet");
      },
    });
    await using other = await serve(broken, { name: "later", port: 0, homePage: answerPage });
    expect(await (await fetch(`${other.url}/`)).text()).toContain("no &lt;data&gt; yet");
  });
});

describe("the look of the page", () => {
  it("counts borders into the width of its parts, which then fit beside each other", () => {
    expect(STYLE).toMatch(/^\* \{ box-sizing: border-box; \}$/m);
  });
});

describe("escaped", () => {
  it("escapes everything that could end a text or an attribute, and loses nothing", () => {
    const entities: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(escaped(text)).not.toMatch(/[<>"']/);
        expect(escaped(text).replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => entities[entity] as string)).toBe(text);
      }),
    );
  });
});
