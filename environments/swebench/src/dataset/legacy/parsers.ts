/** Repositories whose rows may lack `log_parser`, by parser. */
const REPOSITORIES: Readonly<Record<string, readonly string[]>> = {
  astropy: ["astropy/astropy"],
  scikit: ["scikit-learn/scikit-learn"],
  sphinx: ["sphinx-doc/sphinx"],
  django: ["django/django"],
  matplotlib: ["matplotlib/matplotlib"],
  seaborn: ["mwaskom/seaborn"],
  sympy: ["sympy/sympy"],
  pytest: ["pytest-dev/pytest"],
  marshmallow: ["marshmallow-code/marshmallow"],
  flask: ["pallets/flask"],
  pvlib: ["pvlib/pvlib-python"],
  xarray: ["pydata/xarray"],
  astroid: ["pylint-dev/astroid"],
  pyvista: ["pyvista/pyvista"],
  sqlfluff: ["sqlfluff/sqlfluff"],
  requests: ["psf/requests"],
  pydicom: ["pydicom/pydicom"],
  pylint: ["pylint-dev/pylint"],
  calypso: ["Automattic/wp-calypso"],
  chart_js: ["chartjs/Chart.js"],
  marked: ["markedjs/marked"],
  p5js: ["processing/p5.js"],
  react_pdf: ["diegomura/react-pdf"],
  jest: ["babel/babel", "facebook/docusaurus"],
  vitest: ["vuejs/core"],
  immutable_js: ["immutable-js/immutable-js"],
  tap: ["mrdoob/three.js", "axios/axios"],
  karma: ["preactjs/preact"],
  next: ["alibaba-fusion/next"],
  bpmn_js: ["bpmn-io/bpmn-js"],
  carbon: ["carbon-design-system/carbon", "prettier/prettier", "scratchfoundation/scratch-gui"],
  eslint: ["eslint/eslint"],
  lighthouse: ["GoogleChrome/lighthouse"],
  grommet: ["grommet/grommet"],
  highlightjs: ["highlightjs/highlight.js"],
  openlayers: ["openlayers/openlayers"],
  prismjs: ["PrismJS/prism"],
  quarto_cli: ["quarto-dev/quarto-cli"],
  redis: ["redis/redis", "valkey-io/valkey"],
  jq: ["jqlang/jq"],
  doctest: ["nlohmann/json"],
  micropython_test: ["micropython/micropython"],
  googletest: ["fmtlib/fmt"],
  gotest: ["caddyserver/caddy", "hashicorp/terraform", "prometheus/prometheus", "gohugoio/hugo", "gin-gonic/gin"],
  maven: ["google/gson", "apache/druid", "javaparser/javaparser"],
  ant: ["projectlombok/lombok"],
  gradle_custom: ["apache/lucene", "reactivex/rxjava"],
  phpunit: ["phpoffice/phpspreadsheet", "laravel/framework", "php-cs-fixer/php-cs-fixer", "briannesbitt/carbon"],
  jekyll: ["jekyll/jekyll"],
  ruby_unit: ["fluent/fluentd", "faker-ruby/faker"],
  rspec_transformed_json: ["fastlane/fastlane", "jordansissel/fpm", "rubocop/rubocop"],
  cargo: ["burntsushi/ripgrep", "sharkdp/bat", "astral-sh/ruff", "tokio-rs/tokio", "uutils/coreutils", "nushell/nushell", "tokio-rs/axum"],
};

/** Their test runners list failures only. */
const FAIL_ONLY = new Set([
  "chartjs/Chart.js",
  "processing/p5.js",
  "markedjs/marked",
  "bpmn-io/bpmn-js",
  "openlayers/openlayers",
  "eslint/eslint",
]);

const PARSER_OF = new Map(
  Object.entries(REPOSITORIES).flatMap(([parser, repos]) => repos.map((repo) => [repo, `parse_log_${parser}`] as const)),
);

/** Case-sensitive; null for a repository without a known parser. */
export function legacyParser(repo: string): string | null {
  return PARSER_OF.get(repo) ?? null;
}

export function legacyEvalType(repo: string): "pass_and_fail" | "fail_only" {
  return FAIL_ONLY.has(repo) ? "fail_only" : "pass_and_fail";
}
