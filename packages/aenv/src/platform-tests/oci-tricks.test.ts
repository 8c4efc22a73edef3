import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { InstanceSandbox, type SandboxFiles, SchedulerClient } from "@aenv/sdk";
import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { aenv } from "../testing/cli.ts";
import { callTool, urlOf } from "./calls.ts";
import { archiveOf, type Entry } from "./fixtures/archives.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const soon = { timeout: 20_000 };

for (const runtime of ["runc", "runsc"] as const)
  describeNeeding(runtime, `tricks of a program in a sandbox of the engine oci with ${runtime}`, () => {
    let outside: string;
    let file: string;
    let platform: Platform;
    let ref: string;
    let id: string;
    let files: SandboxFiles;

    beforeAll(async () => {
      outside = mkdtempSync(join(tmpdir(), "aenv-tricks-"));
      file = join(outside, "file");
      writeFileSync(file, "of the machine");
      platform = await startPlatform({ flags: { engine: "oci", runtime, diskMb: 256 } });
      ref = await publish(platform, projects.probe);
      ({ id } = await platform.create(ref));
      const scheduler = new SchedulerClient(platform.controlUrl);
      ({ files } = new InstanceSandbox(async () => ({ id, scheduler, control: scheduler.control })));
    }, 120_000);
    afterAll(async () => {
      await platform?.close();
      rmSync(outside, { recursive: true, force: true });
    }, 60_000);

    const run = async (script: string, instance = id) => {
      const body = { command: ["node", "-e", script], wait: true };
      return (await platform.demand("POST", `/env-instance/${instance}/exec`, body)) as { stdout: string; stderr: string };
    };

    const reward = async (instance: string) => {
      const init = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
      return ((await (await fetch(urlOf(platform, instance, "/task/reward"), init)).json()) as { data: number }).data;
    };

    it("a planted reward file does not change the reward, nor does other code in the files of the environment", async () => {
      const planted = await run(`
        for (const path of ["/reward.txt", "/reward.json", "/logs/verifier/reward.txt", "/tmp/reward.txt", "reward.txt"]) {
          fs.mkdirSync(require("path").dirname(path), { recursive: true });
          fs.writeFileSync(path, path.endsWith("json") ? '{"reward": 1}' : "1");
        }
        const forged = "export default { tools: [], rewards: [{ name: 'counted', score: () => 1 }] };";
        const code = fs.globSync("/{*,*/*,*/*/*}/main.js", { exclude: (name) => ["proc", "sys", "usr"].includes(name) });
        for (const path of code) fs.writeFileSync(path, forged);
        console.log(code.length);`);
      expect(planted).toMatchObject({ stdout: expect.stringMatching(/^[1-9]/), stderr: "" });
      expect(await reward(id)).toBe(0);
      const reset = await fetch(urlOf(platform, id, "/task/reset"), {
        method: "POST",
        body: "{}",
        headers: { "content-type": "application/json" },
      });
      expect(reset.status).toBe(200);
      expect(await reward(id)).toBe(0);
      // The next instance has the code that was published.
      const next = await platform.create(ref);
      expect(await reward(next.id)).toBe(0);
      await callTool(urlOf(platform, next.id), "count");
      expect(await reward(next.id)).toBe(1);
    }, 60_000);

    it("links in the sandbox lead to no file of the machine, by reading, writing, listing and archives", async () => {
      await run(`
        fs.mkdirSync("/work");
        for (const [name, target] of [["file", ${JSON.stringify(file)}], ["folder", ${JSON.stringify(outside)}], ["up", "../../../../.."]])
          fs.symlinkSync(target, "/work/" + name);`);
      await expect(files.list("/work/folder")).rejects.toMatchObject({ code: "file.not_found" });
      for (const path of ["/work/file", "/work/folder/file", `/work/up${file}`, `/proc/1/root${file}`, `/work/../../../..${file}`]) {
        await expect(files.readText(path), path).rejects.toMatchObject({ code: "file.not_found" });
        await files.write(path, "planted").catch(() => undefined);
        await files.remove(path).catch(() => undefined);
      }
      expect(Buffer.from(await new Response(await files.download("/work")).arrayBuffer()).includes("of the machine")).toBe(false);
      expect(readdirSync(outside)).toEqual(["file"]);
      expect(readFileSync(file, "utf8")).toBe("of the machine");
    });

    it.each<readonly [string, readonly Entry[]]>([
      ["a name above the folder", [{ path: "../escaped", text: "x" }]],
      ["an absolute name", [{ path: "/escaped", text: "x" }]],
      ["a file through a link that leads out", [{ path: "l", type: "2", link: "/" }, { path: "l/escaped", text: "x" }]], // biome-ignore format: one line per archive
      ["a link above the folder", [{ path: "l", type: "2", link: "../../escaped" }]],
      ["a hard link to a file above the folder", [{ path: "l", type: "1", link: "../etc/passwd" }]],
      ["a character device", [{ path: "d", type: "3" }]],
      ["a block device", [{ path: "d", type: "4" }]],
      ["a pipe", [{ path: "p", type: "6" }]],
    ])("an archive with %s is refused", async (_, entries) => {
      await expect(files.upload("/unpacked", gunzipSync(archiveOf(entries).bytes))).rejects.toMatchObject({
        code: expect.stringMatching(/^(file|request)\./),
      });
      await expect(files.stat("/escaped")).rejects.toMatchObject({ code: "file.not_found" });
      expect(existsSync("/escaped")).toBe(false);
    });

    it("an archive is not unpacked through a link that was there before", async () => {
      await run('fs.mkdirSync("/planted"); fs.mkdirSync("/aside"); fs.symlinkSync("/aside", "/planted/link");');
      for (const path of ["link/file", "link/deep/file"]) {
        const upload = files.upload("/planted", gunzipSync(archiveOf([{ path, text: "x" }]).bytes));
        await expect(upload, path).rejects.toMatchObject({ code: "file.denied" });
      }
      expect(await files.list("/aside")).toEqual([]);
    });

    it("a program that exchanges a folder for a link meanwhile gets no file written elsewhere", async () => {
      const swap = run(`
        fs.mkdirSync("/race/d", { recursive: true }); fs.mkdirSync("/elsewhere"); fs.symlinkSync("/elsewhere", "/race/link");
        let count = 0, created = 0;
        // Whenever the folder is missing, an upload may create it.
        const putBack = () => {
          for (;;) try { return fs.renameSync("/race/kept", "/race/d"); } catch { fs.renameSync("/race/d", "/race/created-" + created++); }
        };
        while (!fs.existsSync("/race-is-over")) for (let n = 0; n < 100; n++) {
          fs.renameSync("/race/d", "/race/kept");
          try { fs.renameSync("/race/link", "/race/d"); fs.renameSync("/race/d", "/race/link"); count++; } catch {}
          putBack();
        }
        console.log(count);`);
      await expect.poll(() => files.stat("/race/link").catch(() => files.stat("/race/kept").catch(() => null)), soon).not.toBeNull();
      const entries = Array.from({ length: 100 }, (_, number) => ({ path: `d/file-${number}`, text: "x" }));
      const archive = gunzipSync(archiveOf(entries).bytes);
      for (let turn = 0; turn < 30; turn++) await files.upload("/race", archive).catch(() => undefined);
      await files.write("/race-is-over", "");
      expect(Number((await swap).stdout)).toBeGreaterThan(100);
      expect(await files.list("/elsewhere")).toEqual([]);
    }, 60_000);

    it("aenv cp follows no link of the sandbox and none of the machine", async () => {
      await run(`
        fs.mkdirSync("/copied", { recursive: true }); fs.writeFileSync("/copied/plain", "plain"); fs.writeFileSync("/copied/taken", "new");
        fs.symlinkSync("/etc/hosts", "/copied/link");`);
      const target = mkdtempSync(join(tmpdir(), "aenv-cp-"));
      try {
        symlinkSync(file, join(target, "taken"));
        const { code, stderr } = await aenv(["cp", "--system-url", platform.controlUrl, `${id}:/copied/.`, "."], { cwd: target });
        expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("link") });
        expect(readFileSync(file, "utf8")).toBe("of the machine");
      } finally {
        rmSync(target, { recursive: true, force: true });
      }
    });
  });
