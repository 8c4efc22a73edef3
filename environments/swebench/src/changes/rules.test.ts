import { describe, expect, it } from "vitest";
import type { Change, TreeFile } from "./compare.ts";
import { filesOfPatch, refusalOf } from "./rules.ts";

const file: TreeFile = { mode: "100644", size: 1, modifiedAt: "", target: "" };
const change = (path: string, after: Partial<TreeFile> = {}): Change => ({ path, before: null, after: { ...file, ...after } });
const rules = { testFiles: new Set(["tests/test_a.py"]), solutionFiles: new Set(["setup.cfg"]), isStrict: true };
const isTaken = (path: string, isStrict = true) => refusalOf(change(path), { ...rules, isStrict }) === null;

describe("a change is part of the patch", () => {
  it.each(["src/a.py", "tests/test_b.py", "setup.cfg", "docs/setup.cfg.md", "src/pytest_like.txt", "src/site.py", "lib/conftest.py.txt"])(
    "if it is of code: %s",
    (path) => {
      expect(isTaken(path)).toBe(true);
    },
  );

  it.each([
    "conftest.py",
    "a/b/conftest.py",
    "sitecustomize.py",
    "x.pth",
    "pytest.ini",
    "tox.ini",
    "pyproject.toml",
    "pytest.py",
    "_pytest/runner.py",
    "package.json",
    "jest.config.mjs",
    "node_modules/tap/index.js",
    ".gitattributes",
  ])("only without strict rules, if it decides how tests are run: %s", (path) => {
    expect([isTaken(path), isTaken(path, false)]).toEqual([false, true]);
  });

  it("never, if it is of the tests or of git", () => {
    for (const path of ["tests/test_a.py", "sub/.git/config", ".GIT/hooks/x", "git~1/config"])
      expect(isTaken(path, false), path).toBe(false);
  });

  it("if it is a link that stays in the repository", () => {
    const isLinkTaken = (path: string, target: string) => refusalOf(change(path, { mode: "120000", target }), rules) === null;
    expect([isLinkTaken("a/b", "../c"), isLinkTaken("a", "b/../c"), isLinkTaken("a", ".")]).toEqual([true, true, true]);
    expect([isLinkTaken("a/b", "../../c"), isLinkTaken("a", "/etc"), isLinkTaken("a", "..")]).toEqual([false, false, false]);
  });
});

it("the files of a patch are those before and after it", () => {
  const patch = "diff --git a/old b/new\nrename from old\n+diff --git a/x b/x\ndiff --git a/b c b/b c\n";
  expect([...filesOfPatch(patch)]).toEqual(["old", "new", "b c"]);
});
