import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../platform-tests/platform.ts";
import { aenv } from "../testing/cli.ts";

/** The files below a folder, with their modes. */
function filesOf(folder: string): Map<string, number> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return new Map(entries.map((one) => [join(one.parentPath, one.name), statSync(join(one.parentPath, one.name)).mode & 0o777]));
}

describe("a backup of a running server", { timeout: 120_000 }, () => {
  const tree = temporaryTree();
  const at = (name: string) => join(tree.path, name);
  let platform: Platform;

  const backUp = async (target: string) => {
    const { code, stdout, stderr } = await aenv(["backup", at(target), "--home", platform.home, "--json"]);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  };
  const restore = (source: string, home: string) => aenv(["restore", at(source), "--home", at(home)]);

  beforeAll(async () => {
    platform = await startPlatform();
    await publish(platform, projects.dice);
    const { id } = await platform.create("dice");
    await platform.demand("POST", `/env-instance/${id}/snapshot`, { name: "kept" });
  });
  afterAll(async () => {
    await platform?.close();
    tree[Symbol.dispose]();
  });

  it.each(["one.tar", "folder"])("has all that was stored, while a publication happens, in %s", async (target) => {
    // The publications begin before the backup and end during it or after it.
    const publishing = ["7.0.0", "7.0.1", "7.0.2"].map((version) =>
      publish(platform, projects.tally, { version: `${version}-${target.slice(0, 3)}` }),
    );
    const made = await backUp(target);
    await Promise.all(publishing);
    expect(made).toMatchObject({ contents: { snapshots: 1 }, damaged: [] });
    expect(made.notIncluded[0]).toMatch(/sandboxes of live instances \(\d+\), which are Failed after a restore/);

    const restored = await restore(target, `home-${target}`);
    expect(restored.stderr).toBe("");
    expect(restored.stdout).toContain("aenv server --home");
    await using second = await startPlatform({ home: at(`home-${target}`) });
    const names = async (one: Platform) =>
      ((await one.demand("GET", "/env")) as { name: string; version: string }[]).map((env) => `${env.name}@${env.version}`);
    const found = await names(second);
    expect(found).toContain("dice@1.0.0");
    // Every version that is listed has its archive, whenever it was published.
    expect(found).toHaveLength(made.contents.environments);
    for (const ref of found) expect((await second.create(ref)).status).toBe("Running");
    expect(await second.demand("GET", "/snapshots")).toMatchObject({ items: [{ name: "kept" }] });
    const { items } = (await second.demand("GET", "/env-instance/list?status=Failed")) as { items: { reason: string }[] };
    expect(items[0]?.reason).toMatch(/sandbox was gone/);
    const fromSnapshot = await second.create("dice", { snapshot: "kept" });
    expect(fromSnapshot.status).toBe("Running");
  });

  it("can be read by its owner only, as the restored home", async () => {
    await backUp("private.tar");
    await backUp("private");
    await restore("private", "home-private");
    expect(statSync(at("private.tar")).mode & 0o777).toBe(0o600);
    for (const folder of ["private", "home-private"]) {
      expect(statSync(at(folder)).mode & 0o777).toBe(0o700);
      expect([...filesOf(at(folder))].filter(([, mode]) => mode !== 0o600)).toEqual([]);
    }
  });

  it("replaces no file, and leaves nothing beside its target", async () => {
    await backUp("once.tar");
    const again = await aenv(["backup", at("once.tar"), "--home", platform.home]);
    expect([again.code, again.stderr]).toEqual([expect.any(Number), expect.stringContaining("exists already; choose another name")]);
    expect(again.code).not.toBe(0);
    expect(readdirSync(tree.path).filter((name) => /partial|copy-/.test(name))).toEqual([]);
  });

  it("names an archive that is damaged in the home, and has all others", async () => {
    await using other = await startPlatform();
    const ref = await publish(other, projects.dice);
    await publish(other, projects.tally);
    const { bundle_digest: digest } = (await other.demand("GET", `/env/${ref.replace("@", "/")}`)) as { bundle_digest: string };
    const [archive = ""] = [...filesOf(join(other.home, "blobs")).keys()].filter(
      (path) => path.includes(digest.slice(7)) && path.endsWith(".gz"),
    );
    truncateSync(archive, 100);
    const { stdout } = await aenv(["backup", at("lossy.tar"), "--home", other.home, "--json"]);
    expect(JSON.parse(stdout).damaged).toEqual([`the archive ${digest} of ${ref}`]);
    expect((await restore("lossy.tar", "home-lossy")).code).toBe(0);
  });

  describe("that is damaged", () => {
    /** Restores into a new folder and into an empty one; neither is changed. */
    async function refusal(source: string): Promise<string> {
      const { code, stderr } = await restore(source, "home-new");
      expect([code, existsSync(at("home-new"))]).toEqual([1, false]);
      tree.write({ "home-empty/.keep": "" });
      rmSync(at("home-empty/.keep"));
      expect((await restore(source, "home-empty")).code).toBe(1);
      expect(readdirSync(at("home-empty"))).toEqual([]);
      return stderr;
    }

    it("restores nothing: a changed byte, a cut end, a missing file, one too many", async () => {
      await backUp("good.tar");
      const good = readFileSync(at("good.tar"));
      const flipped = Buffer.from(good);
      const place = good.indexOf("dice@");
      flipped[place] = (flipped[place] as number) ^ 1;
      writeFileSync(at("flipped.tar"), flipped);
      expect(await refusal("flipped.tar")).toMatch(/with the digest sha256:.*Nothing was restored/s);
      writeFileSync(at("cut.tar"), good.subarray(0, good.length / 2));
      expect(await refusal("cut.tar")).toMatch(/the archive ends/);
      writeFileSync(at("other.tar"), "no archive");
      expect(await refusal("other.tar")).toMatch(/damaged or not a backup/);

      await backUp("parts");
      const [archive = ""] = [...filesOf(at("parts")).keys()].filter((path) => path.endsWith(".gz"));
      const bytes = readFileSync(archive);
      rmSync(archive);
      expect(await refusal("parts")).toMatch(/\.tar\.gz' is missing/);
      writeFileSync(archive, bytes);
      tree.write({ "parts/blobs/extra": "x" });
      expect(await refusal("parts")).toMatch(/contains 'blobs\/extra', which no backup contains/);
      rmSync(at("parts/blobs/extra"));
      rmSync(at("parts/backup.json"));
      expect(await refusal("parts")).toMatch(/no backup.json, so it is incomplete/);
    });
  });

  it("is restored into an empty home only", async () => {
    await backUp("kept.tar");
    const { code, stderr } = await aenv(["restore", at("kept.tar"), "--home", platform.home]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/is not empty \(.*choose one with --home/s)]);
    tree.write({ "occupied/notes.txt": "mine" });
    expect((await restore("kept.tar", "occupied")).stderr).toContain("is not empty (notes.txt)");
    expect(readFileSync(at("occupied/notes.txt"), "utf8")).toBe("mine");
  });
});

describe("a backup", () => {
  it("of a stopped server works, with a store that is not in the home", async () => {
    using tree = temporaryTree();
    const [store, moved] = ["stores/one.db", "stores/two.db"].map((name) => `sqlite:${join(tree.path, name)}`) as [string, string];
    const home = join(tree.path, "home");
    tree.write({ "home/.keep": "" });
    {
      await using platform = await startPlatform({ store, home });
      await publish(platform, projects.dice);
    }
    expect((await aenv(["backup", join(tree.path, "b.tar"), "--home", home, "--store", store])).stderr).toBe("");
    const into = ["--home", join(tree.path, "restored"), "--store", moved];
    expect((await aenv(["restore", join(tree.path, "b.tar"), ...into])).stderr).toBe("");
    expect(statSync(join(tree.path, "stores/two.db")).mode & 0o777).toBe(0o600);
    await using second = await startPlatform({ home: join(tree.path, "restored"), store: moved });
    expect((await second.create("dice")).status).toBe("Running");
  });

  it("of a store in Redis or in memory is refused, with the way to do it there", async () => {
    using tree = temporaryTree();
    const target = join(tree.path, "x.tar");
    const redis = await aenv(["backup", target, "--home", tree.path, "--store", "redis://user:secret@127.0.0.1:1"]);
    expect([redis.code, redis.stderr]).toEqual([1, expect.stringMatching(/only a SQLite store.*BGSAVE.*blobs/s)]);
    expect(redis.stderr).not.toContain("secret");
    expect((await aenv(["backup", target, "--home", tree.path, "--store", "memory:"])).stderr).toContain("ends with its server");
    expect((await aenv(["restore", target, "--home", tree.path, "--store", "redis://127.0.0.1:1"])).stderr).toContain("load the dump.rdb");
    expect((await aenv(["backup", target, "--home", tree.path])).stderr).toContain("pass the server's home with --home");
    expect(readdirSync(tree.path)).toEqual([]);
  });
});
