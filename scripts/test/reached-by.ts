/** The packages, and what the tests of all components share. */
const SHARED =
  "packages/|testing/|environments/(?:echo|games|swebench|terminal-bench)/|deploy/images/|interop/(?:python/|uv\\.sh|package)|package|vitest\\.config|tsconfig|\\.ci/";

/**
 * Components whose tests take minutes, and the paths whose change can reach these tests. `.ci/run` with a base leaves out the components
 * that no changed file reaches. The test beside this file compares the paths with what the tests use.
 */
export const reachedBy: Readonly<Record<string, RegExp>> = {
  kubernetes: reached("deploy/helm/|interop/helm/|bench/|environments/mini-terminal/|examples/|docs/reference/"),
  "kubernetes-node": reached("deploy/helm/|interop/helm/|bench/"),
  helm: reached("deploy/helm/|interop/helm/|environments/mini-terminal/|examples/|docs/reference/"),
  harbor: reached("interop/harbor/"),
  "docker-compose": reached("interop/harbor/"),
  "python-rl": reached("interop/(?:python-rl|mount)/|python/|docs/guides/"),
  "python-data": reached("interop/(?:python-rl|agents)/|python/"),
  "python-verifiers": reached("interop/python-verifiers/|interop/python-rl/|python/"),
  torch: reached("interop/python-rl/|python/|docs/guides/"),
  swebench: reached("interop/swebench/"),
  browser: reached("interop/browser/"),
  buildkitd: reached("bench/"),
  "tau2-data": reached("environments/|interop/python|bench/|docs/guides/|examples/|README\\.md"),
};

/** The components that a change of these files cannot reach. */
export function leftOut(changed: readonly string[]): string[] {
  return Object.keys(reachedBy).filter((component) => !changed.some((path) => reachedBy[component]?.test(path)));
}

function reached(paths: string): RegExp {
  return new RegExp(`^(?:${SHARED}|${paths})`);
}
