import { hostRoutes, instancePrefix, isObject } from "@aenv/contract";
import { z } from "zod";
import type { Check, Subject } from "./check.ts";
import { act, digestOf, oracleOf, parsed, reset } from "./episode.ts";
import { NotOffered, Violation } from "./violation.ts";
import type { Wire } from "./wire.ts";

const created = z.looseObject({ id: z.string() });
const listed = z.looseObject({ items: z.array(created) });
const forkSpec = z.looseObject({
  seed: z.number(),
  environment_variables: z.record(z.string(), z.string()),
  arguments: z.array(z.string()),
});

/** Several instances in one process, for `deployConfig.isolation` "shared". */
export const hostChecks: readonly Check[] = [
  {
    name: "serves several instances that do not notice each other",
    run: (subject) =>
      withInstances(subject, async (wire, [one, two]) => {
        const others = await digestOf({ ...subject, wire: two.wire });
        const own = { ...subject, wire: one.wire };
        const before = await digestOf(own);
        await one.wire.initialize();
        const [action] = (await oracleOf(own)) ?? [];
        if (action !== undefined) await act(own, action);
        if (others !== null && (await digestOf({ ...subject, wire: two.wire })) !== others)
          throw new Violation("a tool call in one instance has changed the digest of another one");
        const { items } = parsed(listed, await wire.ask("GET", hostRoutes.list.path), "GET /env-instance/list");
        for (const { id } of [one, two])
          if (!items.some((item) => item.id === id)) throw new Violation(`GET /env-instance/list must have the instance '${id}'`);
        return action === undefined || before === null ? "without a digest and an oracle, not that they are apart" : undefined;
      }),
  },
  {
    name: "forks an instance inside of its process, and tells another process how to continue it",
    run: (subject) =>
      withInstances(subject, async (wire, [one]) => {
        const path = `${instancePrefix(one.id)}/fork-spec`;
        if ((await wire.send("GET", path)).status === 501) throw new NotOffered("its state is no value, so that it cannot be forked");
        const spec = await wire.ask("GET", path);
        parsed(forkSpec, spec, "GET /env-instance/ID/fork-spec");
        const copy = `${one.id}-copy`;
        await wire.ask("POST", `${instancePrefix(one.id)}/fork`, { ids: [copy] });
        const continued = `${one.id}-continued`;
        await wire.ask("POST", hostRoutes.create.path, { ...(spec as object), id: continued });
        const before = await digestOf({ ...subject, wire: one.wire });
        for (const id of [copy, continued]) {
          if ((await digestOf({ ...subject, wire: wire.below(instancePrefix(id)) })) !== before)
            throw new Violation(
              `the digest of the ${id === copy ? "fork" : "instance that was created from fork-spec"} differs from that of its parent`,
            );
          await wire.send("DELETE", instancePrefix(id));
        }
        return undefined;
      }),
  },
  {
    name: "refuses an instance with an unknown task or an id that is taken, and forgets one that was deleted",
    run: (subject) =>
      withInstances(subject, async (wire, [one]) => {
        const { path } = hostRoutes.create;
        if (subject.tasks.length > 0)
          await wire.refused("POST", path, { id: "aenv-test-none", task: "aenv-no-such-task" }, [404], ["task.not_found"]);
        await wire.refused("POST", path, { id: one.id }, [409], ["instance.exists"]);
        await wire.send("DELETE", instancePrefix(one.id));
        await wire.refused("DELETE", instancePrefix(one.id), undefined, [404], ["instance.not_found"]);
        const { status } = await one.wire.send("GET", "/task/list");
        if (status !== 404) throw new Violation(`the routes of a deleted instance must be answered with 404; it was ${status}`);
        return undefined;
      }),
  },
];

interface Created {
  readonly id: string;
  readonly wire: Wire;
}

async function withInstances(subject: Subject, use: (wire: Wire, instances: readonly [Created, Created]) => Promise<string | undefined>) {
  const { wire, tasks } = subject;
  const { status, json } = await wire.send("GET", hostRoutes.describe.path);
  const described = isObject(json) && isObject(json.data) ? json.data : {};
  if (status !== 200 || described.keepsStateInModules !== false)
    throw new NotOffered('GET /env-instance does not say "keepsStateInModules": false, so each instance has a process of its own');
  const ids: string[] = [];
  const create = async (id: string): Promise<Created> => {
    const body = { id, seed: 7, environment_variables: {}, arguments: [], ...(tasks[0] !== undefined && { task: tasks[0].id }) };
    const answer = parsed(created, await wire.ask("POST", hostRoutes.create.path, body), "POST /env-instance");
    if (answer.id !== id)
      throw new Violation(`POST /env-instance must create the instance with the id '${id}' that it was given; it was '${answer.id}'`);
    ids.push(id);
    const own = { id, wire: wire.below(instancePrefix(id)) };
    if (subject.abilities !== null) await reset(own.wire, tasks[0] ?? null);
    return own;
  };
  try {
    return await use(wire, [await create("aenv-test-one"), await create("aenv-test-two")]);
  } finally {
    for (const id of ids) await wire.send("DELETE", instancePrefix(id));
  }
}
