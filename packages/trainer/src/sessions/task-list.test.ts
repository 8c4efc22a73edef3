import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TaskList } from "./task-list.ts";

const splits = fc.constantFrom("train", "test", "hard");
const tasks = fc
  .uniqueArray(fc.string({ minLength: 1 }), { maxLength: 30 })
  .chain((ids) =>
    fc.tuple(...ids.map((id) => fc.record({ id: fc.constant(id), split: splits, splits: fc.array(splits) }, { requiredKeys: ["id"] }))),
  );

describe("a list of tasks", () => {
  it("gives every task at the index that it is listed with", () => {
    fc.assert(
      fc.property(tasks, (given) => {
        const list = new TaskList(given);
        for (const split of list.splits) {
          for (const task of list.of(split)) expect(list.get({ split, index: task.index as number })).toBe(task);
        }
        for (const task of list.of()) {
          expect(list.get({ id: task.id })).toBe(task);
          if (task.split !== null) expect(list.get({ split: task.split, index: task.index as number }).id).toBe(task.id);
        }
      }),
    );
  });

  it("is the same whether it is read at once or page by page", () => {
    fc.assert(
      fc.property(tasks, fc.integer({ min: 1, max: 7 }), (given, limit) => {
        const list = new TaskList(given);
        const ids: string[] = [];
        for (let after: string | null | undefined; after !== null; ) {
          const page = list.page({ after, limit });
          ids.push(...page.tasks.map(({ id }) => id));
          after = page.next;
        }
        expect(ids).toEqual(given.map(({ id }) => id));
      }),
    );
  });

  it("says what is wrong with a choice", () => {
    const list = new TaskList([{ id: "refund-1", split: "train" }, { id: "refund-2" }]);
    expect(() => list.get({ id: "refund-3" })).toThrow(/there is no task 'refund-3'; did you mean 'refund-[12]'\?/);
    expect(() => list.get({ split: "train", index: 1 })).toThrow("there is no task 1 in split 'train': it has 1, counted from 0");
    expect(() => list.of("test")).toThrow("there is no split 'test'; there are train");
    expect(() => list.page({ after: "x", limit: 1 })).toThrow("after is 'x'");
    expect(() => new TaskList([]).of("test")).toThrow("the tasks have none");
  });
});
