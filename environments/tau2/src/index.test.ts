import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadEnvironment, serve } from "@aenv/kit";
import { describeNeeding, scriptedOpenAi, tau2Path } from "@aenv/testing";
import { Environment } from "aenvironment";
import { expect, it } from "vitest";
import { goldEnvironment } from "./core/evaluate/environment.ts";
import { domains, openDomain } from "./domains/index.ts";
import { tau2Environment } from "./episode/environment.ts";
import { Episode } from "./episode/episode.ts";
import { readSettings } from "./episode/settings.ts";
import { writeJson } from "./python/json/writer.ts";
import { Dict } from "./python/values/values.ts";

const TAU2_DATA_DIR = join(tau2Path, "data");

it("the environment loads with its config, which lets instances share a host", async () => {
  const { name, version, config, definition } = await loadEnvironment(fileURLToPath(new URL("..", import.meta.url)));
  expect([name, version, config?.deployConfig]).toEqual(["tau2", "1.0.0", expect.objectContaining({ isolation: "shared" })]);
  expect(definition.tools?.map((tool) => tool.name)).toEqual(
    expect.arrayContaining(["get_customer_by_id", "toggle_airplane_mode", "done"]),
  );
});

const open = (domain: string, taskId: string, variables: Record<string, string> = {}): Promise<Episode> => {
  const settings = readSettings({ TAU2_DATA_DIR, TAU2_DOMAIN: domain, TAU2_TASK_ID: taskId, TAU2_SOLO_MODE: "false", ...variables });
  return Episode.open(openDomain(domain, TAU2_DATA_DIR), settings);
};
const userAt = (baseUrl: string) => ({ TAU2_USER_LLM: "scripted", TAU2_USER_LLM_API_BASE: baseUrl, TAU2_USER_LLM_API_KEY: "k" });

describeNeeding("tau2-data", "the reference's sets of tasks", () => {
  it.each([
    ["mock", { base: 10 }],
    ["airline", { train: 30, test: 20, base: 50 }],
    ["retail", { train: 74, test: 40, base: 114 }],
    ["telecom", { small: 20, train: 74, test: 40, full: 2285, base: 114 }],
  ])("of %s are splits, each with its tasks in file order", async (domain, counts) => {
    const definition = tau2Environment({ domains, open: openDomain, variables: { TAU2_DATA_DIR, TAU2_DOMAIN: domain } });
    await using sandbox = await serve(definition, { name: "tau2", port: 0 });
    await using env = new Environment("tau2", { instanceUrl: sandbox.url });
    for (const [split, count] of Object.entries(counts)) {
      const listed = (await env.tasks({ split })).map(({ id }) => id);
      expect(listed).toEqual(
        openDomain(domain, TAU2_DATA_DIR)
          .tasks.select(split)
          .map(({ id }) => id),
      );
      expect([split, listed.length]).toEqual([split, count]);
    }
  });
});

describeNeeding("tau2-data", "episodes with the benchmark's data", () => {
  it("mock: a user with tools reads, asks, and ends the conversation", async () => {
    await using model = await scriptedOpenAi([
      { toolCalls: [{ name: "check_notifications" }] },
      "please complete task_1",
      { toolCalls: [{ name: "dismiss_notification", arguments: { notification_id: "notif_1" } }] },
      "bye ###STOP###",
    ]);
    const episode = await open("mock", "update_task_with_user_tools", userAt(model.baseUrl));
    expect(episode.lastObservation).toBe("please complete task_1");
    await episode.act("update_task_status(task_id='task_1', status='completed')");
    // The golden actions dismiss no notification, so by the reference's rules the databases differ.
    expect(await episode.act("Done.")).toEqual({ observation: "bye ###STOP###", reward: 0, done: true, step: 2 });
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["check_notifications", "dismiss_notification"]);
  });

  it("telecom: the user checks the phone when asked to, and the agent sees only the user's message", async () => {
    await using model = await scriptedOpenAi([
      "My phone has no service.",
      { toolCalls: [{ name: "check_status_bar" }] },
      "The status bar shows no signal.",
      "###TRANSFER###",
    ]);
    const id = openDomain("telecom", TAU2_DATA_DIR).tasks.select("base")[0]?.id ?? "";
    const episode = await open("telecom", id, userAt(model.baseUrl));
    expect(await episode.act("Look at your status bar, please.")).toMatchObject({
      observation: "The status bar shows no signal.",
      step: 1,
    });
    expect(model.requests[2]?.messages.at(-1)).toMatchObject({ role: "tool", text: expect.stringMatching(/status bar/i) });
    await episode.act("transfer_to_human_agents(summary='no signal')");
    expect(await episode.act("You are being transferred.")).toMatchObject({ done: true, reward: 0 });
  });

  it("airline: an episode without any action is scored when the user stops", async () => {
    await using model = await scriptedOpenAi(["I want to cancel.", "Bye ###STOP###"]);
    const episode = await open("airline", "1", userAt(model.baseUrl));
    expect(await episode.act("I cannot do that.")).toMatchObject({ done: true, observation: "Bye ###STOP###" });
    expect(episode.unscored).toBeNull();
  });

  it.each(["###TRANSFER###", "###OUT-OF-SCOPE###"])("retail: a user who says %s ends the episode", async (token) => {
    await using model = await scriptedOpenAi(["I want to return my order.", token]);
    const episode = await open("retail", "0", userAt(model.baseUrl));
    await episode.act("transfer_to_human_agents(summary='cannot be done')");
    expect(await episode.act("You are being transferred.")).toMatchObject({ done: true, reward: 0, observation: token });
    expect(episode.terminationReason).toBe("user_stop");
  });

  it("retail: errors are returned to the agent, and too many end the episode", async () => {
    await using model = await scriptedOpenAi(["hello"]);
    const episode = await open("retail", "0", userAt(model.baseUrl));
    const answers = [];
    for (let i = 0; i < 10; i++) answers.push(await episode.act("get_order_details(order_id='#W0')"));
    expect(answers[0]).toMatchObject({ observation: "Error: Order not found", done: false });
    expect(answers.at(-1)).toMatchObject({ done: true, reward: 0 });
    expect(episode.terminationReason).toBe("too_many_errors");
  });

  it.each([
    ["mock", "create_task_1"],
    ["retail", "0"],
    ["retail", "20"],
    ["airline", "1"],
    [
      "telecom",
      "[mms_issue]airplane_mode_on|bad_network_preference|bad_wifi_calling|break_apn_mms_setting|break_app_both_permissions|data_mode_off|data_usage_exceeded|unseat_sim_card|user_abroad_roaming_disabled_off[PERSONA:Hard]",
    ],
  ])("%s, task %s: the golden actions lead to the golden state, also on a fork taken half-way", async (name, id) => {
    const domain = openDomain(name, TAU2_DATA_DIR);
    const settings = readSettings({ TAU2_DATA_DIR, TAU2_SOLO_MODE: "false" });
    const episode = await open(name, id);
    const { task } = episode;
    const actions = (task.evaluation_criteria?.actions ?? []).map((action) =>
      writeJson(Dict.of({ name: action.name, arguments: action.arguments, requestor: action.requestor })),
    );
    const half = Math.floor(actions.length / 2);
    for (const action of actions.slice(0, half)) await episode.act(action);
    const fork = await Episode.restore(domain, settings, JSON.parse(JSON.stringify(await episode.record())));
    for (const action of actions.slice(half)) expect(await fork.act(action)).toEqual(await episode.act(action));
    expect(fork.stateHashes).toEqual(episode.stateHashes);
    const ended = await episode.act("done()");
    expect(await fork.act("done()")).toEqual(ended);
    // Telecom is scored by assertions about the final state: the reference does not sync its golden environment.
    if (name === "telecom") expect(ended).toMatchObject({ done: true, reward: 1 });
    else expect(episode.stateHashes).toEqual(goldEnvironment(domain, task).hashes());
  });
});
