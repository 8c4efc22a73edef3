import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromiumPath, describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";

const repo = fileURLToPath(new URL("../..", import.meta.url));

const source = `import { defineEnvironment } from "aenvironment";
import * as z from "zod";
export default defineEnvironment({
  setup: () => ({ total: 0 }),
  tasks: () => [{ id: "three", instruction: "Reach <b>three</b>." }],
  tools: [
    {
      name: "add",
      description: "Adds <script>window.isBroken = true</script>.",
      input: z.object({ n: z.number(), note: z.string().optional(), isLoud: z.boolean().optional(), tags: z.array(z.string()).optional() }),
      run: ({ n, ...rest }, { state }) => ({ total: (state.total += n), ...rest }),
    },
    { name: "fail", run: () => { throw new Error("<img src=x onerror=alert(1)>"); } },
  ],
  rewards: [{ name: "reached", score: ({ state }) => (state.total === 3 ? 1 : 0) }],
});
`;

describeNeeding("browser", "the page of aenv run, in Chromium", () => {
  let tree: Tree;
  let running: ChildProcess;
  let browser: Browser;
  let url: string;
  beforeAll(async () => {
    tree = temporaryTree({ "config.json": { name: "adder", version: "1.0.0" }, "src/index.ts": source });
    symlinkSync(join(repo, "node_modules"), join(tree.path, "node_modules"));
    const argv = [join(repo, "packages/aenv/bin/aenv.js"), "run", "--port", "0", "--json"];
    running = spawn(process.execPath, argv, { cwd: tree.path, stdio: ["ignore", "pipe", "ignore"] });
    url = await readyUrl(running);
    const { chromium } = await import("playwright-core");
    // The page is trusted, and Chromium's sandbox does not work for root in a container.
    browser = await chromium.launch({ executablePath: chromiumPath() as string, args: ["--no-sandbox"] });
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    if (running !== undefined) {
      running.kill("SIGTERM");
      if (running.exitCode === null) await once(running, "exit");
    }
    tree?.[Symbol.dispose]();
  });

  async function open(options = {}) {
    const page = await browser.newPage(options);
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    await page.goto(`${url}/`);
    return { page, problems };
  }

  it("calls a tool with the form's values, starts a task, and gets the reward", async () => {
    const { page, problems } = await open();
    const form = page.getByRole("form", { name: "add" });
    await form.getByLabel("n *").fill("3");
    await form.getByLabel("isLoud").selectOption("true");
    await form.getByLabel("tags").fill('["a"]');
    await page.getByRole("button", { name: "Start three" }).click();
    await page.getByText("Observation: Reach <b>three</b>.").waitFor();
    await form.getByRole("button", { name: "Call" }).click();
    const answer = form.locator("output:not(:empty)");
    await answer.waitFor();
    expect(JSON.parse(await answer.innerText())).toEqual({ total: 3, isLoud: true, tags: ["a"] });
    await page.getByRole("button", { name: "Get the reward" }).click();
    await page.getByText(/Reward: 1|"reward": 1/).waitFor();
    expect(problems).toEqual([]);
    await page.close();
  });

  it("shows an environment's output as text, and never runs it", async () => {
    const { page, problems } = await open();
    const form = page.getByRole("form", { name: "fail" });
    await form.getByRole("button", { name: "Call" }).click();
    await form.getByText("<img src=x onerror=alert(1)>").waitFor();
    expect(await page.getByText("Adds <script>").count()).toBe(1);
    expect(await page.evaluate("window.isBroken === undefined")).toBe(true);
    expect(problems).toEqual([]);
    await page.close();
  });

  it.each(["light", "dark"] as const)("has text that can be read in %s", async (colorScheme) => {
    const { page } = await open({ colorScheme, viewport: { width: 360, height: 640 } });
    const contrast = (await page.evaluate(`(() => {
      const parts = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((part) => Number(part) / 255);
      const light = (color) => parts(color).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
      const back = getComputedStyle(document.body).backgroundColor;
      return ["h1", "header p", "h2"].map((name) => {
        const [a, b] = [light(getComputedStyle(document.querySelector(name)).color), light(back)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
      });
    })()`)) as number[];
    for (const ratio of contrast) expect(ratio).toBeGreaterThan(4.5);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await page.close();
  });
});

/** The server's URL, from the first event that contains it. */
async function readyUrl(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const event = JSON.parse(line) as { event: string; url?: string };
    if (event.event === "ready") return event.url as string;
  }
  throw new Error("aenv run ended before it was ready");
}
