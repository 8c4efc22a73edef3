/** How a version of a Python repository is installed and tested. */
export interface PythonCommands {
  readonly test: string;
  readonly install: string;
  /** Run before anything else. */
  readonly extra: readonly string[];
}

const DEFAULT: PythonCommands = { test: "pytest -rA", install: "python -m pip install -e .", extra: [] };

/** Python repositories that are tested with the default commands, or with their own. */
const REPOSITORIES: Readonly<Record<string, (version: string) => Partial<PythonCommands>>> = {
  "astropy/astropy": (version) => ({
    install: "python -m pip install -e .[test] --verbose",
    ...(/^(?:0\.[1-4]|1\.[1-3])$/.test(version) && { test: "pytest -rA -vv -o console_output_style=classic --tb=no" }),
  }),
  "django/django": django,
  "matplotlib/matplotlib": (version) => {
    if (/^[12]\./.test(version)) return { install: "python setup.py build; python setup.py install" };
    return version === "3.8" || version === "3.9" ? { install: 'python -m pip install --no-build-isolation -e ".[dev]"' } : {};
  },
  "marshmallow-code/marshmallow": () => ({ install: "python -m pip install -e '.[dev]'" }),
  "mwaskom/seaborn": (version) => ({
    test: "pytest --no-header -rA",
    ...(version !== "0.11" && { install: "python -m pip install -e .[dev]" }),
  }),
  "psf/requests": () => ({ install: "python -m pip install ." }),
  "pvlib/pvlib-python": () => ({ install: "python -m pip install -e .[all]" }),
  "scikit-learn/scikit-learn": () => ({ install: "python -m pip install -v --no-use-pep517 --no-build-isolation -e ." }),
  "sphinx-doc/sphinx": () => ({ test: "tox --current-env -epy39 -v --", install: "python -m pip install -e .[test]" }),
  "sympy/sympy": () => ({
    test: "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
  }),
  "pytest-dev/pytest": () => ({}),
  "pallets/flask": () => ({}),
  "pydata/xarray": () => ({}),
  "pylint-dev/astroid": () => ({}),
  "pyvista/pyvista": () => ({}),
  "sqlfluff/sqlfluff": () => ({}),
  "pydicom/pydicom": () => ({}),
  "pylint-dev/pylint": () => ({}),
};

/** Null for a repository that is not one of these Python repositories. */
export function pythonCommands(repo: string, version: string): PythonCommands | null {
  const own = Object.hasOwn(REPOSITORIES, repo) ? REPOSITORIES[repo] : undefined;
  return own === undefined ? null : { ...DEFAULT, ...own(version) };
}

const DJANGO_TEST = "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1";

function django(version: string): Partial<PythonCommands> {
  const setup = { test: DJANGO_TEST, install: "python setup.py install" };
  if (/^1\.[4-6]$/.test(version)) return setup;
  if (/^(?:1\.(?:[7-9]|10|11)|2\.[0-2])$/.test(version)) {
    const extra = ["export LANG=en_US.UTF-8", "export LC_ALL=en_US.UTF-8", "export PYTHONIOENCODING=utf8", "export LANGUAGE=en_US:en"];
    return { ...setup, extra, ...(version === "1.9" && { test: "./tests/runtests.py --verbosity 2" }) };
  }
  if (!/^3\.[0-2]$/.test(version)) return { test: DJANGO_TEST };
  const extra = [
    "sed -i '/en_US.UTF-8/s/^# //g' /etc/locale.gen && locale-gen",
    "export LANG=en_US.UTF-8",
    "export LANGUAGE=en_US:en",
    "export LC_ALL=en_US.UTF-8",
  ];
  return { test: DJANGO_TEST, extra };
}
