import type { ExactFileInfo, FileInfo } from "@aenv/sandbox";
import { receivedContent } from "../link/content.ts";
import { answerContent, type Handlers, type LinkRequest } from "../link/link-request.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { type HandlerOptions, inSandbox, type SandboxPath } from "./in-sandbox.ts";

type FilePath = Extract<SandboxPath, `/files/${string}`>;

/** Answers requests about files in sandboxes. */
export function fileHandlers({ sandboxes, idleMs, holdAnswer }: HandlerOptions): Pick<Handlers, FilePath> {
  const inside =
    <P extends FilePath>(work: (sandbox: OpenSandbox, call: LinkRequest<P>) => Promise<unknown>) =>
    (call: LinkRequest<P>) =>
      inSandbox(call, sandboxes, (sandbox) => work(sandbox, call));
  return {
    "/files/read": inside(async ({ init, path }, call) => {
      const { path: named, offset, length } = call.given;
      const part = { ...(offset !== undefined && { offset }), ...(length !== undefined && { length }) };
      const { content } = await init.files.open({ path: path(named), abort: call.signal, ...part });
      return answerContent(call, content, { idleMs });
    }),
    "/files/write": inside(({ init, path }, call) => {
      const { path: named, mode, append = false, user } = call.given;
      const more = { ...(mode !== undefined && { mode }), ...(user !== undefined && { user }) };
      const content = receivedContent(call, idleMs);
      return init.files.write({ path: path(named), abort: call.signal, content, mkdirs: true, append, ...more });
    }),
    "/files/list": inside(async ({ init, path }, call) => {
      const { path: named, recursive = false, limit, exact = false } = call.given;
      const options = { path: path(named), abort: call.signal, recursive, limit, onEntry: holdAnswer(call) };
      if (exact) {
        const { files, isTruncated } = await init.files.listExactly(options);
        return { files: files.map(exactFields), truncated: isTruncated };
      }
      const { files, isTruncated } = await init.files.list(options);
      return { files: files.map(fileFields), truncated: isTruncated };
    }),
    "/files/stat": inside(async ({ init, path }, { given }) =>
      fileFields(await init.files.stat({ path: path(given.path), follow: given.follow ?? false })),
    ),
    "/files/mkdir": inside(({ init, path }, { given: { path: named, mode } }) =>
      init.files.mkdir({ path: path(named), parents: true, ...(mode !== undefined && { mode }) }),
    ),
    "/files/remove": inside(({ init, path }, { given }) =>
      init.files.remove({ path: path(given.path), recursive: given.recursive ?? false }),
    ),
    "/files/rename": inside(({ init, path }, { given }) => init.files.rename({ path: path(given.path), to: path(given.to) })),
    "/files/download": inside(async ({ init, path }, call) =>
      answerContent(call, await init.files.pack({ path: path(call.given.path), abort: call.signal }), { idleMs }),
    ),
    "/files/upload": inside(({ init, path }, call) => {
      const { path: named, user } = call.given;
      const archive = receivedContent(call, idleMs);
      return init.files.unpack({ path: path(named), abort: call.signal, archive, ...(user !== undefined && { user }) });
    }),
    "/files/export": inside(async ({ init }, call) => {
      const content = await init.files.export({ paths: receivedContent(call, idleMs), abort: call.signal });
      return answerContent(call, content, { idleMs, readsRequest: true });
    }),
    "/files/import": inside(({ init }, call) => init.files.import({ archive: receivedContent(call, idleMs), abort: call.signal })),
  };
}

function fileFields({ path, type, size, mode, uid, gid, modifiedMs, target }: FileInfo): object {
  return { path, type, size, mode, uid, gid, modifiedAt: new Date(modifiedMs).toISOString(), ...(target !== undefined && { target }) };
}

function exactFields(file: ExactFileInfo): object {
  const { modifiedNs, changedMs, inode, attributes } = file;
  return {
    ...fileFields(file),
    modifiedNs,
    changedAt: new Date(changedMs).toISOString(),
    ...(inode !== undefined && { inode }),
    ...(attributes !== undefined && { attributes }),
  };
}
