/** Reads that `checkForeignReads` reports by their form, and that need no other limit. */
export interface ReadAllowance {
  /** Why the bytes are not foreign, or which limit the read has that the check does not see. */
  readonly because: string;
  /** The reads by file: a part of the line of each read. */
  readonly reads: Readonly<Record<string, readonly string[]>>;
}

export const allowedReads: readonly ReadAllowance[] = [
  {
    because: "This is the helper.",
    reads: { "packages/contract/src/bounded-json.ts": ["return JSON.parse(text);"] },
  },

  // Bytes that are not foreign.
  {
    because: "The platform wrote these records into its own files, rows, labels and annotations.",
    reads: {
      "packages/rollout/src/journal/line.ts": ["JSON.parse(line)"],
      "packages/sandbox/src/base-root/base-root.ts": ["JSON.parse(known)"],
      "packages/sandbox/src/memory/snapshots.ts": ['"node:stream/consumers"', "JSON.parse(await text(await open(part)))"],
      "packages/sandbox/src/oci/images.ts": ["JSON.parse(text) as Image"],
      "packages/sandbox/src/images/layers.ts": ["JSON.parse(text) as Layer"],
      "packages/sandbox/src/host/records.ts": ["JSON.parse(readReplacedFile("],
      "packages/sandbox/src/oci/runtime/records.ts": ["JSON.parse(text) as RuntimeRecord"],
      "packages/server/src/snapshots/content.ts": ["createZstdDecompress()"],
      "packages/server/src/stores/row.ts": ["JSON.parse(text) as T"],
      "packages/server/src/stores/sqlite/store.ts": ["JSON.parse(row.indexes)"],
      "packages/server/src/task-sandboxes/instance-sandboxes.ts": ["JSON.parse(spec)"],
      "environments/terminal-bench/src/environment/stored-report.ts": ["JSON.parse(text) as StoredReport"],
    },
  },
  {
    because: "The loop reads the rows of the platform's own store, or the processes of its own machine.",
    reads: {
      "packages/sandbox/src/host/process-table.ts": ["allPids(50)", "allPids(5)"],
      "packages/server/src/hub/versions/catalog.ts": ["this.rows.each("],
      "packages/server/src/instances/recovery.ts": ["handover.live()"],
      "packages/trainer/src/rollouts/rollout-table.ts": ["rows.each("],
    },
  },
  {
    because:
      "A program of the machine wrote this: ip, nft, runc, runsc, skopeo or docker, about what the platform or the user asked it to do.",
    reads: {
      "packages/aenv/src/image/build-image.ts": [
        'child.stdout.setEncoding("utf8").on("data"',
        'child.stderr.setEncoding("utf8").on("data"',
      ],
      "packages/sandbox/src/network/refusals.ts": ["JSON.parse(json)"],
      "packages/sandbox/src/network/routes.ts": ["JSON.parse(json.trim()", "JSON.parse((await command(", "JSON.parse(await command("],
      "packages/sandbox/src/oci/runtime/command.ts": ["JSON.parse(line)"],
      "packages/sandbox/src/oci/runtime/runsc.ts": ["JSON.parse(text)"],
    },
  },
  {
    because: "The user of the command, or the operator of the server, wrote this file or this argument.",
    reads: {
      "packages/aenv/src/call/arguments.ts": ["return JSON.parse(text);"],
      "packages/aenv/src/commands/config/key.ts": ["return JSON.parse(text);"],
      "packages/aenv/src/image/artifact.ts": ["JSON.parse(text)"],
      "packages/aenv/src/rollout/chosen-agent.ts": ["return JSON.parse(text);"],
      "packages/kit/src/load/load.ts": ["value = JSON.parse(text);"],
      "packages/sandbox/src/registry/credentials.ts": ["JSON.parse(text) as { readonly auths"],
    },
  },
  {
    because: "Only the last 2,000 characters are kept, and whatever is before them is dropped at once.",
    reads: {
      "packages/kit/src/mount/child-place.ts": ['child.stderr.on("data"'],
      "packages/kit/src/mount/sandbox-place.ts": ["for await (const bytes of process.stderr)"],
    },
  },
  {
    because: "The server sends these requests to the process that unpacks images.",
    reads: {
      "packages/sandbox/src/images/unpack/program.ts": [
        '"node:readline"',
        'JSON.parse(process.argv[2] ?? "")',
        "JSON.parse(line) as UnpackRequest",
      ],
    },
  },
  {
    because: "A program that the user develops or starts on the own machine prints these lines, which are shown as they arrive.",
    reads: {
      "packages/aenv/src/bundle/catalogue.ts": ['.on("data", onOutput)'],
      "packages/aenv/src/conformance/project-tests.ts": ['stream.setEncoding("utf8").on("data", write)'],
      "packages/aenv/src/dev/command-process.ts": ['"node:readline"'],
      "packages/aenv/src/dev/inspector.ts": ['stream.on("data"'],
      "packages/aenv/src/dev/sandbox-process.ts": ['"node:readline"', "JSON.parse(line.slice(at))"],
    },
  },
  {
    because: "The text was written by this code a moment ago, or it is no stream but a text in memory.",
    reads: {
      "environments/tau2/src/episode/parts.ts": ["JSON.parse(argumentsText)"],
      "environments/terminal-bench/src/environment/terminal-tools.ts": ["terminal.screen.text()"],
      "packages/server/src/api/operation-routes.ts": ["await metrics.text()"],
      "packages/server/src/sandboxes/command-output.ts": ["kept.stdout.bytes()"],
      "packages/server/src/link/request-body.ts": ["line.bytes()", "this.bytes()"],
      "packages/sdk/src/transport/fetch.ts": ["for await (const part of body) parts.push("],
    },
  },
  {
    because: "A tool of a benchmark's authors reads the benchmark's own data, in a process of its own.",
    reads: {
      "environments/tau2/src/prompts/tool-schemas.ts": ['JSON.parse(data.text("schemas", file))'],
      "environments/terminal-bench/src/data/dataset-file.ts": ["JSON.parse(text)"],
      "environments/terminal-bench/src/dataset/registry.ts": ["JSON.parse(source)"],
      "environments/terminal-bench/src/results/job-result.ts": ["JSON.parse(source)"],
    },
  },
  {
    because: "An example of a user's own program, which asks the model that the user chose; it shows the platform, and stays short.",
    reads: {
      "examples/agent/agent.ts": ["await response.text()", "await response.json()"],
      "packages/aenv/templates/agent/agent.ts": ["await response.text()", "await response.json()"],
    },
  },

  // Foreign bytes with a limit that the check does not see.
  {
    because: "Each piece is passed on when it has arrived, with backpressure, and none is kept.",
    reads: {
      "environments/mini-terminal/src/shell/output-pipe.ts": ['this.#socket.on("data"'],
      "packages/kit/src/mcp/web.ts": ["answer.body.getReader()"],
      "packages/kit/src/sandboxes/command.ts": ["partsOf(stream, signal)", "bytesOf(stream, signal)"],
      "packages/sandbox/src/init/folder.ts": ["archiveOf(folder)"],
      "packages/sandbox/src/oci/sandbox.ts": ['stream.on("data", (data: Buffer) => this.#print(data))'],
      "packages/sdk/src/transport/fetch.ts": ["response.body?.getReader()"],
      "packages/trainer/src/rollouts/routes.ts": ["for await (const text of texts)"],
      "packages/server/src/gateway/fast-path/connection.ts": ['socket.on("data", this.#onData)'],
      "packages/server/src/gateway/tunnel.ts": ['from.on("data"'],
      "packages/rollout/src/data/parquet.ts": ["group.push(row)"],
    },
  },
  {
    because: "The decoder that gets the pieces refuses a frame, an event or a line that is too long.",
    reads: {
      "packages/rollout/src/journal/lines.ts": ["for await (const chunk of stream)"],
      "packages/rollout/src/journal/journal.ts": ["createGunzip()"],
      "packages/sandbox/src/docker/sandbox.ts": ["frames.push(data)", "last.push(line)"],
      "packages/sandbox/src/init/connection.ts": ["decoder.push(received)", 'socket.on("data"'],
      "packages/sandbox/src/kubernetes/log.ts": ["last.push(line)"],
      "packages/sdk/src/platform/scheduler-client.ts": ["decoder.push(chunk)"],
      "packages/sdk/src/sandbox/files.ts": ["for await (const chunk of chunks)"],
    },
  },
  {
    because: "The code around it counts the bytes, and stops at its own limit.",
    reads: {
      "environments/mini-terminal/src/shell/bash.ts": ['control.on("data", onData)'],
      "environments/swebench/src/evaluate/task-sandbox.ts": ["for await (const part of from)"],
      "environments/terminal-bench/src/trial/files.ts": ["parts.push(part)"],
      "packages/aenv/src/bundle/tar.ts": ["chunks.push(chunk)"],
      "packages/kit/src/http/callers.ts": ['socket.on("readable", onReadable)'],
      "packages/kit/src/http/exchange.ts": ['request.on("data"'],
      "packages/rollout/src/agents/command.ts": ["tail.push(piece)"],
      "packages/rollout/src/agents/inside.ts": ["tail.push(piece)"],
      "packages/sandbox/src/init/files.ts": ["boundedLines(receiver, LINE_LIMITS)"],
      "packages/sandbox/src/images/unpack/archive.ts": ["createGunzip()", 'child.stderr?.setEncoding("utf8").on("data"'],
      "packages/sandbox/src/images/unpack/unpacker.ts": ['stderr.setEncoding("utf8").on("data"', "output.setEncoding("],
      "packages/sandbox/src/host/remove-tree.ts": ["for await (const entry of entries)"],
      "packages/sandbox/src/oci/snapshots/archive.ts": ['child.stderr?.setEncoding("utf8").on("data"'],
      "packages/server/src/gateway/request-body.ts": ['request.on("data", this.#onData)'],
      "packages/server/src/gateway/tunnel.ts": ['program.on("data", onData)'],
      "packages/server/src/http/body.ts": ['source.on("data", onData)'],
      "packages/server/src/hub/archives/gunzip.ts": ["createGunzip("],
      "packages/server/src/hub/bundles/unpack.ts": ["for await (const chunk of file.body)"],
      "packages/server/src/sandboxes/command-output.ts": ["outputOf(process, "],
      "packages/server/src/link/request-body.ts": ['stream.on("readable", take)'],
    },
  },
  {
    because: "The chunks come from a body whose size was limited where the request was sent.",
    reads: { "packages/rollout/src/models/answer.ts": ["maxBytes: Number.POSITIVE_INFINITY"] },
  },
  {
    because: "Each item is small, and the command shows all of them: one number per episode, one row per instance or snapshot.",
    reads: {
      "packages/aenv/src/commands/instance/list.ts": ["scheduler.eachInstance(filter)"],
      "packages/aenv/src/commands/runs/compare.ts": ["scores.push(scoreOf(trajectory))"],
      "packages/aenv/src/commands/runs/show.ts": ["scores.push(scoreOf(trajectory))"],
      "packages/aenv/src/commands/snapshot/list.ts": ["all.push(one)"],
      "packages/aenv/src/commands/tasks/stats.ts": ["scores.push(scoreOf(trajectory))"],
    },
  },
  {
    because: "The text has a limit of bytes, and the depth is checked or its overflow of the stack is caught by the code around it.",
    reads: {
      "environments/swebench/src/parsers/javascript/mocha-report.ts": ["JSON.parse(`"],
      "packages/benchmark/src/python/plain-json.ts": ["convert(JSON.parse(text))"],
    },
  },
  {
    because: "The options of the server are a variable; they have `maxPayload`.",
    reads: { "packages/trainer/src/openenv/connection.ts": ["new WebSocketServer(options)"] },
  },
  {
    because: "The WebSocket of Node and of browsers has no such option. Node closes it at a message of more than 128 MiB.",
    reads: { "packages/sdk/src/sandbox/process.ts": ["new WebSocket(url"] },
  },
  {
    because: "The delay is limited to a minute before it is used: `askedPauseMs`, `waitMs` and `send`.",
    reads: {
      "environments/tau2/src/llm/endpoint.ts": ['headers.get("retry-after")'],
      "packages/sandbox/src/kubernetes/api/client.ts": ['answer.headers["retry-after"]'],
      "packages/sdk/src/errors/http-errors.ts": ['answer.header("retry-after")'],
    },
  },
];
