import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { goCache } from "../../testing/process.ts";

/**
 * The variables of a reader's shell, with a separate home folder and npm cache. The downloads are shared with the machine's cache; they
 * are found by their hash, so this is safe.
 */
export function readersEnv(home: string, plain: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = npmConfig("cache");
  const cache = join(home, ".npm/_cacache");
  mkdirSync(cache, { recursive: true });
  mkdirSync(join(kept, "_cacache/content-v2"), { recursive: true });
  symlinkSync(join(kept, "_cacache/content-v2"), join(cache, "content-v2"));
  const userConfig = join(homedir(), ".npmrc");
  return {
    ...Object.fromEntries(Object.entries(plain).filter(([name]) => !/^(AENV_|DUMMY_|HUB_)/.test(name))),
    // The certificates of the registry belong to the machine.
    ...(process.env.NODE_EXTRA_CA_CERTS !== undefined && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
    HOME: home,
    ...goCache,
    npm_config_cache: join(home, ".npm"),
    ...(existsSync(userConfig) && { npm_config_userconfig: userConfig }),
    // The answer to the question of npx.
    npm_config_yes: "true",
    // Package metadata is requested once, not again for each document.
    npm_config_prefer_offline: "true",
    npm_config_update_notifier: "false",
    npm_config_fund: "false",
    npm_config_audit: "false",
  };
}

/** Puts the Node that the docs require first on PATH. */
export function withNeededNode(home: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const bin = join(home, "bin");
  mkdirSync(bin, { recursive: true });
  symlinkSync(process.execPath, join(bin, "node"));
  return { ...env, PATH: `${bin}${delimiter}${env.PATH}` };
}

export function npmConfig(key: string): string {
  return execFileSync("npm", ["config", "get", key], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}
