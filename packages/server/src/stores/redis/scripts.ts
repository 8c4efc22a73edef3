import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";

/** A Lua script, called by its hash; it is sent again if Redis does not have it, for example after a restart. */
export class Script {
  readonly #lua: string;
  readonly #hash: string;

  constructor(lua: string) {
    this.#lua = lua;
    this.#hash = createHash("sha1").update(lua).digest("hex");
  }

  async run(client: Redis | Cluster, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await client.evalsha(this.#hash, keys.length, ...keys, ...args);
    } catch (error) {
      // NOSCRIPT means that nothing ran.
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return await client.eval(this.#lua, keys.length, ...keys, ...args);
    }
  }
}

/**
 * Revisions only grow, also across removals. They follow Redis's clock, so that they grow even if Redis restarts without
 * its last writes: a revision must never refer to two different values.
 */
const REVISION = `
local function next_rev(counter)
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local last = tonumber(redis.call('GET', counter) or '0')
  local rev = string.format('%.0f', math.max(last + 1, now))
  redis.call('SET', counter, rev)
  return rev
end`;

const INDEXES = `
local function add_to_indexes(base, indexes, key)
  for _, name in ipairs(cjson.decode(indexes)) do redis.call('ZADD', base .. name, 0, key) end
end
local function remove_from_indexes(base, indexes, key)
  for _, name in ipairs(cjson.decode(indexes)) do redis.call('ZREM', base .. name, key) end
end`;

/** Keys: row, keys, rev, receipt, set of the limit. Arguments: key, value, indexes, base of indexes, receipt's ms, limit or ''. */
export const insertScript = new Script(`${REVISION}${INDEXES}
if redis.call('EXISTS', KEYS[4]) == 1 then return 'inserted' end
if redis.call('EXISTS', KEYS[1]) == 1 then return 'exists' end
if ARGV[6] ~= '' and redis.call('ZCARD', KEYS[5]) >= tonumber(ARGV[6]) then return 'limit' end
redis.call('HSET', KEYS[1], 'v', ARGV[2], 'r', next_rev(KEYS[3]), 'i', ARGV[3])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
add_to_indexes(ARGV[4], ARGV[3], ARGV[1])
redis.call('SET', KEYS[4], '', 'PX', ARGV[5])
return 'inserted'`);

/** Keys: row, rev, receipt. Arguments: key, value, indexes, base of indexes, receipt's ms, expected revision. */
export const swapScript = new Script(`${REVISION}${INDEXES}
if redis.call('EXISTS', KEYS[3]) == 1 then return 1 end
local row = redis.call('HMGET', KEYS[1], 'r', 'i')
if row[1] ~= ARGV[6] then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[2], 'r', next_rev(KEYS[2]), 'i', ARGV[3])
if row[2] ~= ARGV[3] then
  remove_from_indexes(ARGV[4], row[2], ARGV[1])
  add_to_indexes(ARGV[4], ARGV[3], ARGV[1])
end
redis.call('SET', KEYS[3], '', 'PX', ARGV[5])
return 1`);

/** Keys: row, keys, receipt. Arguments: key, base of indexes, receipt's ms, expected revision or ''. */
export const removeScript = new Script(`${INDEXES}
if redis.call('EXISTS', KEYS[3]) == 1 then return 1 end
local row = redis.call('HMGET', KEYS[1], 'r', 'i')
if not row[1] or (ARGV[4] ~= '' and row[1] ~= ARGV[4]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
remove_from_indexes(ARGV[2], row[2], ARGV[1])
redis.call('SET', KEYS[3], '', 'PX', ARGV[3])
return 1`);

/** Keys: a sorted set of keys. Arguments: base of rows, start, limit. Returns key, revision, value, key, … */
export const listScript = new Script(`
local found = {}
for _, key in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], ARGV[2], '+', 'LIMIT', 0, ARGV[3])) do
  local row = redis.call('HMGET', ARGV[1] .. key, 'r', 'v')
  found[#found + 1] = key
  found[#found + 1] = row[1]
  found[#found + 1] = row[2]
end
return found`);
