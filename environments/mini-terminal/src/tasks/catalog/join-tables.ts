import { commands, type TerminalTask } from "../task.ts";
import { fileProblems } from "../tree.ts";

export const joinTables: TerminalTask = {
  id: "join-tables",
  split: "test",
  instruction:
    "users.tsv has the columns id and name, orders.tsv the columns order, user and cents; columns are separated by tabs, and there are no headers. Write report.tsv with one line for each user, also for those without orders: name, number of orders and sum of cents, separated by tabs. The highest sum comes first; users with equal sums are in byte order of their names.",
  begin: (random) => {
    const users = random.shuffle(["ada", "bela", "carl", "dora", "emil", "fay", "gus", "hana"]).map((name) => ({
      id: random.hex(8),
      name: `${name} ${random.words(1)}`,
      orders: 0,
      cents: 0,
    }));
    const orders = Array.from({ length: 60 }, (_, at) => {
      // The last user orders nothing.
      const user = users[random.integer(0, users.length - 2)] as (typeof users)[number];
      const cents = random.integer(100, 9_900);
      user.orders++;
      user.cents += cents;
      return `${1_000 + at}\t${user.id}\t${cents}\n`;
    });
    const sorted = users.toSorted((a, b) => b.cents - a.cents || (a.name < b.name ? -1 : 1));
    const expected = sorted.map(({ name, orders, cents }) => `${name}\t${orders}\t${cents}\n`).join("");
    return {
      files: { "users.tsv": users.map(({ id, name }) => `${id}\t${name}\n`).join(""), "orders.tsv": orders.join("") },
      check: ({ folder }) => fileProblems(folder, "report.tsv", expected),
      solution: commands(
        "head -n 2 users.tsv orders.tsv",
        `awk -F'\\t' -v OFS='\\t' 'NR == FNR { n[$2]++; sum[$2] += $3; next } { print $2, n[$1] + 0, sum[$1] + 0 }' orders.tsv users.tsv | LC_ALL=C sort -t $'\\t' -k3,3nr -k1,1 > report.tsv`,
      ),
    };
  },
};
