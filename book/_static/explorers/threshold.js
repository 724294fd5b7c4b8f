/* When is a bias a bias? Twins: lib.relu.train, unit_states, lib.relu.linearization (with_constant, early_directions, linear_preference),
   lib.data.tasks (hierarchy, separability, one_row_per_class). A bias is a constant input of strength c, the last feature. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), T = (E.threshold = {});
  const HIDDEN = 32, LOOKS = 100;
  const RATE = { tree: 0.01, xor: 0.02 };

  /* Eight one-hot items that must name all their ancestors in a tree: the root, halves, quarters, leaves. */
  T.tree = function (c) {
    const items = 8, x = new Float64Array(9 * items), y = [];
    for (let i = 0; i < items; i++) x[i * items + i] = 1;
    x.fill(c, items * items);
    for (let size = items; size >= 1; size /= 2)
      for (let node = 0; node < items / size; node++) for (let i = 0; i < items; i++) y.push(Math.floor(i / size) === node ? 1 : 0);
    return { x, y: Float64Array.from(y), features: 9, items, outputs: 15 };
  };

  /* An XOR in two dimensions, pulled apart along a third by a margin; one row of labels per class. */
  T.xor = function (c, margin) {
    const sign = [-1, 1, 1, -1], x = Float64Array.of(-1, 1, -1, 1, -1, -1, 1, 1, ...sign.map((s) => margin * s), c, c, c, c);
    return { x, y: Float64Array.of(...sign.map((s) => +(s < 0)), ...sign.map((s) => +(s > 0))), features: 4, items: 4, outputs: 2 };
  };

  T.task = ({ task, c, margin }) => (task === "tree" ? T.tree(c) : T.xor(c, margin));
  T.duration = ({ task, std }) => (task === "tree" ? 8 + 2 * Math.log10(2e-3 / std) : 12 + 2 * Math.log10(2e-2 / std));

  /* Directions in which small units may grow, for two outputs: for every set of items the first singular pair of Σ y xᵀ, if its input
     vector is positive on that set and on no other item. [{speed, on}], the fastest first; `on` is a number of bits. */
  T.earlyDirections = function ({ x, y, features, items }) {
    const found = [];
    for (let on = 1; on < 1 << items; on++) {
      const rows = [0, 1].map((o) => E.range(features).map((f) => E.sum(E.range(items).map((i) => ((on >> i) & 1) * y[o * items + i] * x[f * items + i]))));
      const dot = (a, b) => E.sum(a.map((v, i) => v * b[i])), [p, q, r] = [dot(rows[0], rows[0]), dot(rows[0], rows[1]), dot(rows[1], rows[1])];
      const top = (p + r) / 2 + Math.hypot((p - r) / 2, q), u = Math.abs(q) > 1e-14 ? [q, top - p] : p >= r ? [1, 0] : [0, 1], long = Math.hypot(...u);
      const v = rows[0].map((value, f) => (u[0] * value + u[1] * rows[1][f]) / long);
      let z = E.range(items).map((i) => E.sum(v.map((value, f) => value * x[f * items + i])));
      if (E.sum(z.filter((_, i) => (on >> i) & 1)) < 0) z = z.map((value) => -value);
      const rounding = 1e-9 * Math.max(...z.map(Math.abs));
      if (top > 0 && z.every((value, i) => ((on >> i) & 1 ? value > rounding : value <= rounding))) found.push({ speed: Math.sqrt(top), on });
    }
    return found.sort((a, b) => b.speed - a.speed);
  };

  /* Does "on for all items" grow fastest? */
  T.biasFirst = function (c, margin) {
    const [first] = T.earlyDirections(T.xor(c, margin));
    return first !== undefined && first.on === 15;
  };

  /* A network with a constant, ReLU or linear: {advance(steps), states(), loss(), weights}. */
  T.network = function (setting, linear = false) {
    const data = T.task(setting), { x, y, features, items, outputs } = data;
    const weights = E.networks.draw(features, HIDDEN, outputs, setting.std, setting.seed);
    const trainer = E.networks.trainer(weights, x, y, { features, hidden: HIDDEN, outputs, items, linear });
    return {
      advance: (steps) => { for (let k = 0; k < steps; k++) trainer.step(RATE[setting.task]); },
      states: () => E.networks.unitStates(E.networks.gates(weights.first, x, features, HIDDEN, items), items),
      loss: trainer.loss, weights,
    };
  };

  /* The constant that should turn half of the units on, read off a network with a vanishing one: without_bias, predicted_on, threshold. */
  T.border = function (std, seed, looks = 60) {
    const probe = 1e-6, net = T.network({ task: "tree", c: probe, std, seed }), { first } = net.weights, start = first.slice();
    const each = Math.max(1, Math.round(T.duration({ task: "tree", std }) / RATE.tree / looks)), seen = []; // where c² must be for each unit, at each time
    for (let look = 0; look <= looks; look++) {
      if (look) net.advance(each);
      seen.push(E.range(HIDDEN).map((u) => {
        const lowest = Math.min(...first.slice(9 * u, 9 * u + 8)), lift = (first[9 * u + 8] - start[9 * u + 8]) / probe;
        return { lowest, lift };
      }));
    }
    const strengths = E.range(101, -4, 1).map((power) => 10 ** power);
    const on = strengths.map((c) => Math.max(...seen.map((units) => units.filter(({ lowest, lift }) => lowest + c ** 2 * lift > 0).length / HIDDEN)));
    return Math.exp(E.crossing(strengths.map(Math.log), on, 0.5, true));
  };

  /* Plane (1) or XOR (0)? The network is asked about all eight corners: lib.relu.linearization.linear_preference. */
  T.preference = function ({ first, second }, margin, c) {
    let plane = 0, xor = 0;
    for (const a of [-1, 1]) for (const b of [-1, 1]) for (const side of [-1, 1]) {
      const point = [a, b, margin * side, c];
      let difference = 0;
      for (let u = 0; u < HIDDEN; u++) {
        const z = E.sum(point.map((value, f) => value * first[u * 4 + f]));
        if (z > 0) difference += (second[HIDDEN + u] - second[u]) * z;
      }
      plane += (difference * side) / 8;
      xor -= (difference * a * b) / 8;
    }
    return Math.min(1, Math.max(0, plane / (plane + xor)));
  };

  T.compute = function (setting) {
    const relu = T.network(setting), linear = T.network(setting, true);
    relu.advance(setting.steps);
    linear.advance(setting.steps);
    const result = { relu: relu.loss(), linear: linear.loss(), states: relu.states() };
    if (setting.task === "tree") return { ...result, border: T.border(setting.std, setting.seed) };
    const directions = T.earlyDirections(T.xor(setting.c, setting.margin));
    return { ...result, preference: T.preference(relu.weights, setting.margin, setting.c), speeds: directions.map((one) => one.speed), on: directions.map((one) => one.on) };
  };

  /* ---- on the page ---- */

  const kept = { tree: [], xor: [] };
  let queue = [];
  const setting = (models) => ({ task: models.task.active === 0 ? "tree" : "xor", c: 10 ** models.c.value, std: 10 ** models.std.value, margin: models.margin.value, seed: 1 });

  T.start = function (models) {
    const margins = E.range(61, 0, 1.2), border = margins.map((margin) => {
      let [low, high] = [0.05, 2];
      for (let k = 0; k < 18; k++) {
        const middle = (low + high) / 2;
        if (T.biasFirst(middle, margin)) high = middle; else low = middle;
      }
      return high;
    });
    models["border-xor"].data = { c: border, y: margins };
    const scales = E.range(8, -6, -2.5).map((power) => 10 ** power), tree = [];
    E.run("threshold", () => { // one scale a frame
      tree.push(T.border(scales[tree.length], 1));
      models["border-tree"].data = { c: tree.slice(), y: scales.slice(0, tree.length) };
      if (tree.length < scales.length) return true;
      T.update(models);
      return false;
    });
  };

  T.tap = function (models) {
    const { x, y } = models.task.tags[0];
    models.c.value = Math.min(models.c.end, Math.max(models.c.start, Math.log10(Math.max(x, 1e-9))));
    if (models.task.active === 0) models.std.value = Math.min(models.std.end, Math.max(models.std.start, Math.log10(y)));
    else models.margin.value = Math.min(1.2, Math.max(0, y));
  };

  const mixed = (share) => {
    const parse = (colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)), [a, b] = [parse(E.colour("gated")), parse(E.colour("linear"))];
    return `rgb(${a.map((v, k) => Math.round(v + share * (b[k] - v))).join(",")})`;
  };

  T.repaint = function (models) {
    for (const task of ["tree", "xor"])
      models[`kept-${task}`].data = { c: kept[task].map((one) => one.c), y: kept[task].map((one) => one.y), colour: kept[task].map((one) => mixed(one.share)) };
  };

  T.keep = function (models, now, share) {
    const y = now.task === "tree" ? now.std : now.margin;
    kept[now.task] = [...kept[now.task].filter((one) => Math.abs(Math.log(one.c / now.c)) > 1e-6 || Math.abs(one.y - y) > 1e-12), { c: now.c, y, share }].slice(-300);
    T.repaint(models);
  };

  /* Train a grid of networks, one a frame, and colour the diagram with them. */
  T.map = function (models) {
    const now = setting(models);
    queue = [];
    if (now.task === "tree") for (let s = -5.5; s <= -2.6; s += 0.5) for (let c = -2.75; c <= 0.3; c += 0.25) queue.push({ ...now, std: 10 ** s, c: 10 ** c });
    else for (let margin = 0.1; margin <= 1.15; margin += 0.2) for (let c = 0.15; c <= 1.5; c += 0.15) queue.push({ ...now, margin, c });
    E.run("threshold", () => {
      const one = queue.shift(), net = T.network(one), each = Math.ceil(T.duration(one) / RATE[one.task] / 25);
      let most = 0;
      for (let k = 0; k < 25; k++) {
        net.advance(each);
        most = Math.max(most, net.states().on);
      }
      T.keep(models, one, one.task === "tree" ? most : T.preference(net.weights, one.margin, one.c));
      return queue.length > 0;
    });
  };

  /* Train the network at the chosen place, some hundred steps a frame, beside its linear twin. */
  T.update = function (models) {
    const now = setting(models), tree = now.task === "tree";
    models["diagram-tree"].visible = tree;
    models["diagram-xor"].visible = !tree;
    models.margin.disabled = tree;
    models["now-tree"].data = { c: [now.c], y: [now.std] };
    models["now-xor"].data = { c: [now.c], y: [now.margin] };
    const relu = T.network(now), linear = T.network(now, true), each = Math.ceil(T.duration(now) / RATE[now.task] / LOOKS);
    const path = { t: [], relu: [], linear: [], on: [], gating: [], off: [] };
    const look = () => {
      const states = relu.states();
      path.t.push(path.t.length * each * RATE[now.task]);
      path.relu.push(relu.loss());
      path.linear.push(linear.loss());
      for (const key of ["on", "gating", "off"]) path[key].push(states[key]);
    };
    look();
    models.losses.setv({ start: 0, end: 1.05 * path.relu[0] });
    for (const range of ["time-top", "time-low"]) models[range].setv({ start: 0, end: LOOKS * each * RATE[now.task] });
    E.run("threshold", () => {
      const begin = performance.now();
      while (path.t.length <= LOOKS && performance.now() - begin < 14) {
        relu.advance(each);
        linear.advance(each);
        look();
      }
      models.path.data = Object.fromEntries(Object.entries(path).map(([key, values]) => [key, values.slice()]));
      if (path.t.length <= LOOKS) return true;
      T.done(models, now, path, relu);
      return false;
    });
  };

  T.done = function (models, now, path, relu) {
    const most = Math.max(...path.on), strength = `c = ${now.c.toPrecision(2)}`;
    if (now.task === "tree") {
      T.keep(models, now, most);
      E.say("threshold", `At ${strength} and an initial scale of ${E.scientific(now.std)}, up to ${(100 * most).toFixed(0)} % of the units are on for all items: ` +
        (most > 0.5 ? "the network is linear for a while and learns in the linear network's stages." : most > 0.1 ? "not most of them; the bias comes too late for the others." : "the bias comes too late, and units gate from the start."));
      return;
    }
    const share = T.preference(relu.weights, now.margin, now.c), directions = T.earlyDirections(T.xor(now.c, now.margin)), all = directions.find((one) => one.on === 15);
    const rival = directions.find((one) => one.on !== 15);
    T.keep(models, now, share);
    E.say("threshold", `At ${strength} and a margin of ${now.margin.toFixed(2)}, "on for all items" ${all ? `grows at ${all.speed.toFixed(2)}` : "is no direction to grow in"}` +
      `${rival ? `, the best other direction at ${rival.speed.toFixed(2)}` : ""}. The trained network follows the plane to ${(100 * share).toFixed(0)} %, the XOR to ${(100 - 100 * share).toFixed(0)} %.`);
  };
})(globalThis);
