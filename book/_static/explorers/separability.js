/* A line or an XOR. Twins: lib.relu.separability (line_pathways, xor_pathways, loss_curve, kinds_of_gate), lib.data.tasks.separability,
   lib.relu.train. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), S = (E.separability = {});
  const HIDDEN = 128, RATE = 0.4, STEPS = 150, LONG = 600, STD = Math.sqrt(4e-8 / HIDDEN), LEVEL = 0.2;
  const SIZE = { features: 3, hidden: HIDDEN, outputs: 1, items: 4, mean: true };

  /* One pathway per class sees the margin alone; one per point sees the whole vector. Make Haste Slowly Eqs 13-17 and Appendix C. */
  S.line = (margin) => ({ s: margin / 2, d: margin ** 2 / 2, groups: 2, a0: (HIDDEN / 2) * STD ** 2 / 2 });
  S.xor = (margin) => ({ s: Math.sqrt(2 + margin ** 2) / 4, d: (2 + margin ** 2) / 4, groups: 4, a0: (HIDDEN / 4) * STD ** 2 / 2 });

  /* Mean loss before training and after each step of gradient descent, exactly: a ← a (1 + step (s - a d))². */
  S.lossCurve = function (steps, { s, d, groups, a0 }) {
    const curve = new Array(steps + 1);
    for (let k = 0, a = a0; k <= steps; k++, a *= (1 + RATE * (s - a * d)) ** 2) curve[k] = 0.5 - groups * (s * a - (d * a * a) / 2);
    return curve;
  };

  S.timeToLevel = (gating) => E.crossing(E.range(LONG + 1), S.lossCurve(LONG, gating), LEVEL);

  S.task = function (margin) {
    const y = Float64Array.of(-1, 1, 1, -1);
    return { x: Float64Array.of(-1, 1, -1, 1, -1, -1, 1, 1, ...y.map((label) => margin * label)), y };
  };

  /* "line" for units on for exactly one class, "xor" for one point, "dead" for none, else "other". */
  S.kind = (bits) => (bits === 6 || bits === 9 ? "line" : [1, 2, 4, 8].includes(bits) ? "xor" : bits === 0 ? "dead" : "other");

  /* A ReLU network trained on the task: loss (steps + 1), and weights after every step if `keep`. */
  S.train = function (margin, seed, steps = STEPS, keep = false) {
    const { x, y } = S.task(margin), weights = E.networks.draw(3, HIDDEN, 1, STD, seed);
    const trainer = E.networks.trainer(weights, x, y, SIZE), loss = [], path = [];
    for (let k = 0; k <= steps; k++) {
      if (keep) path.push({ first: weights.first.slice(), second: weights.second.slice() });
      loss.push(k < steps ? trainer.step(RATE) : trainer.loss());
    }
    return { loss, path, weights, x };
  };

  /* What kinds of units do the work, counted by |incoming| |outgoing|. */
  S.shares = function (weights, x) {
    const gates = E.networks.gates(weights.first, x, 3, HIDDEN, 4), size = E.networks.unitWeight(weights, 3, HIDDEN, 1);
    const total = E.sum(size), share = { line: 0, xor: 0, other: 0, dead: 0 };
    gates.forEach((bits, unit) => (share[S.kind(bits)] += size[unit] / total));
    return share;
  };

  S.compute = function ({ margin, seed, steps }) {
    const run = S.train(margin, seed, steps);
    return { line: S.lossCurve(steps, S.line(margin)), xor: S.lossCurve(steps, S.xor(margin)), relu: run.loss, shares: S.shares(run.weights, run.x),
      times: [S.timeToLevel(S.line(margin)), S.timeToLevel(S.xor(margin))] };
  };

  /* ---- on the page ---- */

  let seed = 1, run = null, trained = "";
  /* A drawing of three dimensions: the second coordinate leads to the back. */
  const across = (p) => p[0] + 0.55 * p[1], up = (p) => 0.8 * p[2] + 0.33 * p[1];

  S.start = function (models) {
    const margins = E.range(101, 0, 2), time = (kind) => margins.map((margin) => S.timeToLevel(S[kind](margin)));
    models.times.data = { margin: margins, line: time("line"), xor: time("xor") };
    S.update(models);
  };

  S.again = function (models) {
    seed += 1;
    S.update(models);
  };

  /* Let training pass before the reader's eyes. */
  S.play = function (models) {
    models.step.value = 0;
    E.run("separability", () => {
      models.step.value = Math.min(STEPS, models.step.value + 2);
      S.arrows(models);
      return models.step.value < STEPS;
    });
  };

  S.update = function (models) {
    const margin = models.margin.value;
    if (trained !== `${margin} ${seed}`) {
      run = S.train(margin, seed, STEPS, true);
      run.shares = run.path.map((weights) => S.shares(weights, run.x));
      trained = `${margin} ${seed}`;
      const steps = E.range(STEPS + 1), part = (kind) => run.shares.map((share) => share[kind]);
      models.losses.data = { step: steps, line: S.lossCurve(STEPS, S.line(margin)), xor: S.lossCurve(STEPS, S.xor(margin)), relu: run.loss };
      models.parts.data = { step: steps, line: part("line"), xor: part("xor"), other: part("other") };
    }
    const [line, xor] = [S.timeToLevel(S.line(margin)), S.timeToLevel(S.xor(margin))], took = E.crossing(E.range(STEPS + 1), run.loss, LEVEL);
    models.now.data = { margin: [margin], time: [took] };
    models.here.location = margin;
    S.arrows(models);
    const words = (t) => (Number.isFinite(t) ? `${t.toFixed(0)} steps` : "never");
    const last = run.shares[STEPS], winner = line < xor ? "class" : "point";
    E.say("separability", `Margin ${margin.toFixed(2)}: a pathway per ${winner} should win (per point ${words(xor)}, per class ${words(line)}). This ReLU network takes ${words(took)}; ` +
      `units that are on for one class end up with ${(100 * last.line).toFixed(0)} % of the work, units that are on for one point with ${(100 * last.xor).toFixed(0)} %.`);
  };

  S.arrows = function (models) {
    const k = models.step.value, { first } = run.path[k], gates = E.networks.gates(first, run.x, 3, HIDDEN, 4);
    const unit = (u) => [first[3 * u], first[3 * u + 1], first[3 * u + 2]], shown = 72;
    const longest = Math.max(...E.range(shown).map((u) => Math.hypot(...unit(u))));
    const tone = { line: E.colour("linear"), xor: E.colour("gated"), other: E.colour("untrained"), dead: E.colour("faint") };
    const ends = E.range(shown).map((u) => unit(u).map((w) => (1.7 * w) / longest));
    models.units.data = { x0: ends.map(() => 0), y0: ends.map(() => 0), x1: ends.map(across), y1: ends.map(up), colour: E.range(shown).map((u) => tone[S.kind(gates[u])]) };
    const margin = models.margin.value, corners = [[-1, -1, -margin], [1, -1, margin], [-1, 1, margin], [1, 1, -margin]];
    models.points.data = { x: corners.map(across), y: corners.map(up), colour: corners.map((p, i) => ([0, 3].includes(i) ? E.colour("faint") : E.colour("ink"))) };
    const reach = Math.max(1.05, 0.8 * margin + 0.5);
    models.scene.setv({ start: -reach, end: reach });
    for (const at of ["at-loss", "at-part"]) models[at].location = k;
  };
})(globalThis);
