import { commands, type TerminalTask } from "../task.ts";
import { fileProblems } from "../tree.ts";

const REGIONS = ["east", "north", "south", "west"];
const PRODUCTS = ["bolt", '"bolt, long"', "nut", '"washer, flat, small"', "gear"];

export const csvTotals: TerminalTask = {
  id: "csv-totals",
  split: "train",
  instruction:
    "sales.csv has the columns date, region, product, units and price; a price is in cents for one unit. Write totals.csv with the header 'region,total' and one line for each region, in alphabetical order, with the sum of units times price.",
  begin: (random) => {
    const totals = new Map<string, number>();
    const rows = Array.from({ length: 300 }, () => {
      const [region, units, price] = [random.pick(REGIONS), random.integer(1, 40), random.integer(5, 900)];
      totals.set(region, (totals.get(region) ?? 0) + units * price);
      return `2026-02-${String(random.integer(1, 28)).padStart(2, "0")},${region},${random.pick(PRODUCTS)},${units},${price}\n`;
    });
    const expected = [...totals.keys()].sort().map((region) => `${region},${totals.get(region)}\n`);
    return {
      files: { "sales.csv": `date,region,product,units,price\n${rows.join("")}` },
      check: ({ folder }) => fileProblems(folder, "totals.csv", `region,total\n${expected.join("")}`),
      solution: commands(
        "head -n 4 sales.csv",
        `{ echo region,total; awk -F, 'NR > 1 { t[$2] += $(NF - 1) * $NF } END { for (r in t) print r "," t[r] }' sales.csv | LC_ALL=C sort; } > totals.csv`,
      ),
    };
  },
};
