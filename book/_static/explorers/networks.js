/* Networks with one hidden layer, trained by full-batch gradient descent. Twins: lib.relu.train, loss, gates, unit_states, share.
   Weights are {first (hidden, features), second (outputs, hidden)}; data x (features, items), y (outputs, items). */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), N = (E.networks = {});

  /* Independent normal weights of standard deviation `std`, the first layer's before the second's. */
  N.draw = function (features, hidden, outputs, std, seed) {
    const normal = E.generator(seed).normals(hidden * (features + outputs)).map((value) => std * value);
    return { first: normal.slice(0, hidden * features), second: normal.slice(hidden * features) };
  };

  /* A network and its data, ready to be trained: `step(rate)` makes one step, `loss()` is half the squared error before it. */
  N.trainer = function (weights, x, y, { features, hidden, outputs, items, linear = false, mean = false }) {
    const { first, second } = weights, share = mean ? 1 / items : 1;
    const z = new Float64Array(hidden * items), h = new Float64Array(hidden * items), error = new Float64Array(outputs * items);
    const back = new Float64Array(hidden * items), slope1 = new Float64Array(first.length), slope2 = new Float64Array(second.length);
    function answer() {
      E.product(first, x, hidden, features, items, { out: z });
      for (let i = 0; i < z.length; i++) h[i] = linear || z[i] > 0 ? z[i] : 0;
      E.product(second, h, outputs, hidden, items, { out: error });
      for (let i = 0; i < error.length; i++) error[i] -= y[i];
    }
    function loss() {
      answer();
      let total = 0;
      for (let i = 0; i < error.length; i++) total += error[i] * error[i];
      return 0.5 * share * total;
    }
    /* The loss before the step, so that a curve costs nothing more than the training. */
    function step(rate) {
      const before = loss();
      E.product(error, h, outputs, items, hidden, { bT: true, out: slope2 });
      E.product(second, error, hidden, outputs, items, { aT: true, out: back });
      if (!linear) for (let i = 0; i < back.length; i++) if (!(z[i] > 0)) back[i] = 0;
      E.product(back, x, hidden, items, features, { bT: true, out: slope1 });
      for (let i = 0; i < first.length; i++) first[i] -= rate * share * slope1[i];
      for (let i = 0; i < second.length; i++) second[i] -= rate * share * slope2[i];
      return before;
    }
    return { step, loss, z, weights };
  };

  /* Which items switch which units on, as one number of bits per unit: bit i is item i. */
  N.gates = function (first, x, features, hidden, items) {
    const z = E.product(first, x, hidden, features, items);
    return Array.from({ length: hidden }, (_, unit) => {
      let bits = 0;
      for (let i = 0; i < items; i++) if (z[unit * items + i] > 0) bits |= 1 << i;
      return bits;
    });
  };

  /* |incoming weights| |outgoing weights| of each unit. */
  N.unitWeight = function ({ first, second }, features, hidden, outputs) {
    return Array.from({ length: hidden }, (_, unit) => {
      let into = 0, out = 0;
      for (let k = 0; k < features; k++) into += first[unit * features + k] ** 2;
      for (let k = 0; k < outputs; k++) out += second[k * hidden + unit] ** 2;
      return Math.sqrt(into) * Math.sqrt(out);
    });
  };

  /* Shares of units that are on for every item, off for every item, or gating. */
  N.unitStates = function (gates, items) {
    const all = (1 << items) - 1, count = gates.length;
    const on = gates.filter((bits) => bits === all).length / count, off = gates.filter((bits) => bits === 0).length / count;
    return { on, off, gating: 1 - on - off };
  };
})(globalThis);
