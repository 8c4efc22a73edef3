import { PlatformError } from "./errors.ts";

/**
 * Which environment variables may be set, and by whom.
 *
 * Variables of an instance become environment variables of a process that runs the publisher's code, and a caller may use environments
 * of other publishers. So a caller may set the names that an environment itself reads (`API_KEY`, `TAU2_DOMAIN`), but not those
 * that loaders, interpreters, shells, tools, TLS or network libraries read. With these a caller could run its own code in the
 * publisher's process, or read and change the publisher's traffic. A publisher may set all of these for its own code. Only the
 * platform sets `AENV_*` and `OTEL_*`: they contain folders and addresses that the process trusts.
 */
export type VariableSetter = "caller" | "publisher";

export type Variables = Readonly<Record<string, string>>;

/** As in Kubernetes. In particular no `=`, no NUL, and no `BASH_FUNC_x%%`, which bash reads as a function. */
const NAME = /^[A-Za-z._-][A-Za-z0-9._-]*$/;

const PLATFORM = /^(?:AENV|OTEL)_/;

/** The name and version of the environment: the original's clients send them; the platform adds what they leave out. */
const IDENTITY = ["envNAME", "envversion"] as const;

/** Variables that programs read, rather than an environment's own code. Compared in upper case. */
const RESERVED: readonly { readonly reads: string; readonly names: RegExp }[] = [
  {
    reads: "the dynamic linker or the C library",
    names:
      /^(?:LD_.*|_RLD.*|DYLD_.*|LDR_.*|LIBPATH|SHLIB_PATH|GLIBC_.*|MALLOC_.*|GCONV_PATH|GETCONF_DIR|LOCPATH|NLSPATH|TZDIR|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|NIS_PATH|KRB5.*)$/,
  },
  {
    reads: "Node.js or its tools",
    names: /^(?:NODE_.*|NPM_.*|YARN_.*|PNPM_.*|TS_NODE_.*|TSX_.*|ELECTRON_.*|DENO_.*|BUN_.*|COREPACK_.*|UV_.*)$/,
  },
  {
    reads: "an interpreter or a virtual machine",
    names:
      /^(?:PYTHON.*|PIP_.*|VIRTUAL_ENV|CONDA_.*|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|BUNDLER_.*|_?JAVA_.*|JDK_.*|CLASSPATH|MAVEN_.*|GRADLE_.*|DOTNET_.*|COMPLUS_.*|CORECLR_.*|PHPRC|PHP_.*|LUA_.*|GODEBUG|GOFLAGS|GOPATH|GOROOT|CARGO_.*|RUSTC.*|RUSTUP_.*|RUSTFLAGS|R_HOME|R_PROFILE.*|R_ENVIRON.*|R_LIBS.*|ERL_.*|JULIA_.*|TCLLIBPATH|TCL_LIBRARY)$/,
  },
  {
    reads: "a shell",
    names: /^(?:ENV|SHELL|SHELLOPTS|BASH.*|IFS|PS[0-9]|PROMPT_COMMAND|CDPATH|GLOBIGNORE|ZDOTDIR|FPATH|NULLCMD|READNULLCMD|INPUTRC)$/,
  },
  {
    reads: "programs to find other programs or their options",
    names:
      /^(?:PATH|GIT_.*|SSH_.*|SUDO_.*|EDITOR|VISUAL|PAGER|MANPAGER|BROWSER|LESS|LESSOPEN|LESSCLOSE|LESSKEY.*|MAKE|MAKEFLAGS|MAKEFILES|MFLAGS|CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|TAR_OPTIONS|GREP_OPTIONS|RSYNC_.*|TERMCAP|TERMINFO.*|DOCKER_.*|KUBECONFIG|GNUPGHOME|WGETRC|CURL_HOME)$/,
  },
  { reads: "programs to find their folders", names: /^(?:HOME|PWD|OLDPWD|TMPDIR|TMP|TEMP|TMPPREFIX|XDG_.*)$/ },
  {
    reads: "TLS libraries to choose trusted certificates",
    names: /^(?:SSL_.*|SSLKEYLOGFILE|OPENSSL_.*|CURL_.*|REQUESTS_CA_BUNDLE|GRPC_DEFAULT_SSL_ROOTS_FILE_PATH)$/,
  },
  { reads: "HTTP clients to choose a proxy", names: /^.*_PROXY$/ },
];

export type VariableKind = "platform" | "identity" | "reserved" | "free";

export function variableKind(name: string): VariableKind {
  if (IDENTITY.some((one) => one === name)) return "identity";
  const upper = name.toUpperCase();
  if (PLATFORM.test(upper)) return "platform";
  return RESERVED.some(({ names }) => names.test(upper)) ? "reserved" : "free";
}

/** Why this variable may not be set, or null if it may. The text never contains the value: it may be a secret. */
export function variableProblem(name: string, value: string, setter: VariableSetter): string | null {
  if (!NAME.test(name)) return `${quoted(name)} is not a variable's name: use letters, digits, '_', '.' and '-', and no digit first`;
  if (value.includes("\0")) return `the value of ${quoted(name)} contains a NUL byte, which no environment variable can contain`;
  switch (variableKind(name)) {
    case "platform":
      return `${quoted(name)} is set by the platform and by nobody else; choose a name that does not begin with AENV_ or OTEL_`;
    case "reserved":
      return setter === "publisher" ? null : reservedProblem(name);
    case "identity":
    case "free":
      return null;
  }
}

/** Throws if a caller may not set one of the variables, or if one names another environment than the instance's. */
export function assertVariables(variables: Variables, environment: { readonly name: string; readonly version: string }): void {
  for (const [name, value] of Object.entries(variables)) {
    const problem = variableProblem(name, value, "caller") ?? identityProblem(name, value, environment);
    if (problem !== null) throw new PlatformError("request.invalid", `environment_variables: ${problem}`, { details: { variable: name } });
  }
}

/** Clients without a version send an empty string. */
function identityProblem(name: string, value: string, environment: { readonly name: string; readonly version: string }): string | null {
  if (variableKind(name) !== "identity" || value === "") return null;
  const actual = name === "envNAME" ? environment.name : environment.version;
  return value === actual ? null : `${quoted(name)} must be '${actual}', or be left out: it names the environment of the sandbox`;
}

function reservedProblem(name: string): string {
  const reads = RESERVED.find(({ names }) => names.test(name.toUpperCase()))?.reads ?? "other programs";
  return (
    `${quoted(name)} is read by ${reads}, so a caller may not set it; ` +
    "the environment's publisher can, in deployConfig.environment_variables"
  );
}

function quoted(name: string): string {
  return `'${name.length > 80 ? `${name.slice(0, 77)}...` : name}'`;
}
