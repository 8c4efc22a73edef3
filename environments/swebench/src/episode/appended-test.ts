import { filesOfPatch } from "../changes/rules.ts";

/** A runner that goes on after a failed test, and whose tests can be added at the end of a file. */
interface Runner {
  /** The command that runs it. */
  readonly command: RegExp;
  /** Options with which it ends after a failure, or runs chosen tests only. */
  readonly without: RegExp;
  readonly file: RegExp;
  /** A test that fails; null if the file's tests are written in another way. */
  readonly test: (id: string, patch: string) => string | null;
}

const JAVASCRIPT = /\.(?:[cm]?[jt]s|[jt]sx)$/;

/** In the way of the tests in the patch, so that the function is known in the file. */
function javascriptTest(id: string, patch: string): string | null {
  const name = /^[+ ]\s*(it|test)\(/m.exec(patch)?.[1];
  return name === undefined ? null : `${name}("${id}", () => { throw new Error("${id}"); });`;
}

const RUNNERS: readonly Runner[] = [
  {
    command: /^(?:[A-Za-z_]\w*=\S* )*node (?:--?[\w=-]+ )*\S+\.[cm]?js$/,
    without: / --test-(?:name-pattern|only|skip-pattern)\b/,
    file: JAVASCRIPT,
    test: javascriptTest,
  },
  {
    command: /^(?:[A-Za-z_]\w*=\S* )*(?:npx |yarn |pnpm )?(?:\S*\/)?(?:jest|mocha|vitest)(?: |$)/,
    without: / (?:-b|--bail|-[tgf]|--(?:testNamePattern|grep|fgrep|onlyFailures|onlyChanged))\b/,
    file: JAVASCRIPT,
    test: javascriptTest,
  },
  {
    command: /^(?:[A-Za-z_]\w*=\S* )*go test /,
    without: / --?(?:failfast|run|skip|short)\b/,
    file: /_test\.go$/,
    test: (id) => `func Test_${id}(t *testing.T) { t.Fatal("${id}") }`,
  },
  {
    command: /^(?:[A-Za-z_]\w*=\S* )*(?:\S*\/runtests\.py|python3? -m unittest)(?: |$)/,
    without: / (?:--failfast|-f|-k|--tag|--exclude-tag)\b/,
    file: /\.py$/,
    test: (id) => `import unittest\\nclass Test_${id}(unittest.TestCase):\\n    def test_${id}(self):\\n        self.fail()`,
  },
];

/** The command that adds a test that fails to a file of the tests. Null if it is not certain that the other tests run as before. */
export function appendedTest(commands: readonly string[], testPatch: string, id: string): string | null {
  const [command = "", ...more] = commands;
  if (more.length > 0 || /[;&|<>`$()]/.test(command)) return null;
  const runner = RUNNERS.find((one) => one.command.test(command) && !one.without.test(command));
  const file = [...filesOfPatch(testPatch)].find((path) => runner?.file.test(path) && /^[\w./-]+$/.test(path) && isRun(command, path));
  const test = file === undefined ? null : runner?.test(id, testPatch);
  return test == null ? null : `printf '\\n${test}\\n' >> ${file}`;
}

/** As a path, as the name of a module, in Django one of the folder `tests`, or as a file in a package of Go. */
function isRun(command: string, path: string): boolean {
  if (path.endsWith(".go")) return true;
  const module = path.replace(/\.py$/, "").replaceAll("/", ".");
  const names = [path, `./${path}`, ...(path.endsWith(".py") ? [module, module.replace(/^tests\./, "")] : [])];
  return command.split(" ").some((word) => names.includes(word));
}
