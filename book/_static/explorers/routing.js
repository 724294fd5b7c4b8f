/* Routes between domains through one shared hidden layer. Twins: lib.gated.architectures.routing (initial_weights, gradient, train,
   route_losses, circulant, blocks, star, reachable), rivals (strength_before, effective_start, spectrum, rival_strengths,
   predicted_loss), closed_forms (routing_descent, routing_loss), lib.data.tasks.routing_items.
   A mask is an array of domains² booleans, rows for output domains and columns for input domains. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), R = (E.routing = {});
  const M = 6, HIDDEN = 32, ITEMS = 4, OUTPUTS = 7, RATE = 0.03, LARGEST = 0.16, MOST = 1500;
  const HEIGHTS = [6, 4, 3]; // of the tree's levels: everything, halves, single items
  const D = 1 / ITEMS; // the variance of a one-hot input
  R.domains = M;

  /* The step in the convention of Eq. 1 that does what learning rate RATE does in the paper's programs (step_of_rate), or LARGEST. */
  R.step = (mask) => Math.min(LARGEST, (RATE * mask.filter(Boolean).length * 2) / OUTPUTS);

  /* Σyx of the data set that all routes share, (outputs, items): the tree's properties over four. */
  R.yx = Float64Array.from({ length: OUTPUTS * ITEMS }, (_, i) => {
    const row = Math.floor(i / ITEMS), item = i % ITEMS;
    const has = row === 0 || (row < 3 ? Math.floor(item / 2) === row - 1 : item === row - 3);
    return has ? HEIGHTS[row === 0 ? 0 : row < 3 ? 1 : 2] / ITEMS : 0;
  });
  R.yy = ITEMS * E.sum([...R.yx].map((v) => v * v)); // mean |y|²
  /* Its singular values: the tree's own modes, known from its heights. */
  R.s = [HEIGHTS[0] ** 2 * 4 + HEIGHTS[1] ** 2 * 2 + HEIGHTS[2] ** 2, HEIGHTS[1] ** 2 * 2 + HEIGHTS[2] ** 2, HEIGHTS[2] ** 2, HEIGHTS[2] ** 2].map((v) => Math.sqrt(v) / ITEMS);

  /* ---- which routes are trained ---- */

  const cells = (rule) => Array.from({ length: M * M }, (_, i) => rule(Math.floor(i / M), i % M));
  R.circulant = (trained) => cells((out, into) => (out - into + M) % M < trained);
  R.blocks = (number) => cells((out, into) => Math.floor((out * number) / M) === Math.floor((into * number) / M));
  R.star = () => cells((out, into) => out === 0 || into === 0);

  /* Routes whose two ends hang together through trained routes. */
  R.reachable = function (mask) {
    const part = E.range(2 * M); // outputs, then inputs
    for (let changed = true; changed; ) {
      changed = false;
      mask.forEach((trained, i) => {
        const out = Math.floor(i / M), into = M + (i % M), low = Math.min(part[out], part[into]);
        if (trained && part[out] !== part[into]) {
          part[out] = part[into] = low;
          changed = true;
        }
      });
    }
    return cells((out, into) => part[out] === part[M + into]);
  };

  R.regular = function (mask) {
    const count = (rule) => E.range(M).map((k) => mask.filter((on, i) => on && rule(i) === k).length);
    const all = [...count((i) => Math.floor(i / M)), ...count((i) => i % M)];
    return all[0] > 0 && all.every((value) => value === all[0]);
  };

  /* Singular values of a mask, largest first: Jacobi's rotations on maskᵀ mask. */
  R.singularValues = function (mask) {
    const w = Float64Array.from(mask, Number), a = E.product(w, w, M, M, M, { aT: true });
    for (let sweep = 0; sweep < 40; sweep++)
      for (let p = 0; p < M; p++)
        for (let q = p + 1; q < M; q++) {
          const off = a[p * M + q];
          if (Math.abs(off) < 1e-300) continue;
          const angle = 0.5 * Math.atan2(2 * off, a[q * M + q] - a[p * M + p]), c = Math.cos(angle), s = Math.sin(angle);
          for (let k = 0; k < M; k++) {
            const [x, y] = [a[k * M + p], a[k * M + q]];
            a[k * M + p] = c * x - s * y;
            a[k * M + q] = s * x + c * y;
          }
          for (let k = 0; k < M; k++) {
            const [x, y] = [a[p * M + k], a[q * M + k]];
            a[p * M + k] = c * x - s * y;
            a[q * M + k] = s * x + c * y;
          }
        }
    return E.range(M).map((k) => Math.sqrt(Math.max(0, a[k * M + k]))).sort((x, y) => y - x);
  };

  /* ---- what the theory says ---- */

  R.ESCAPE = (function () { // coth T = T
    let [low, high] = [1, 2];
    for (let k = 0; k < 60; k++) {
      const t = (low + high) / 2;
      if (Math.cosh(t) - t * Math.sinh(t) > 0) low = t; else high = t;
    }
    return low;
  })();

  R.strengthBefore = function (t) {
    const [c, s] = [Math.cosh(t), Math.sinh(t)];
    return (s * c ** 2 + 2 * t * c + t ** 2 * (t * c - s)) / (c - t * s) ** 3;
  };

  R.effectiveStart = (scale) => (scale * Math.atan(Math.sqrt(M - 1))) / Math.sqrt(M - 1) / R.ESCAPE;

  /* Loss on untrained routes in the end, relative to the start, for a wide network; null where the theory does not speak: domains with
     different numbers of routes, nothing untrained, or weights that are not small. */
  R.predictedLoss = function (mask, scale) {
    if (!R.regular(mask) || mask.every(Boolean)) return null;
    const values = R.singularValues(mask), speed = values.slice(1).map((value) => value / values[0]);
    const weight = R.s.map((s) => s ** 2 / D), all = E.sum(weight);
    let total = 0;
    for (const s of R.s) {
      const target = (M * s) / D, used = R.ESCAPE - scale / Math.cbrt(target);
      if (used <= 0) return null;
      const a = speed.map((rho) => (R.strengthBefore(rho * used) * scale ** 3) / target);
      total += (s ** 2 / D / all) * (E.sum(a.map((v) => v * v)) + E.sum(a.map((v, i) => v * speed[i])) ** 2);
    }
    return total / (1 - mask.filter(Boolean).length / M ** 2);
  };

  /* Loss on trained routes by Eqs 13 and 14 of the Neural Race, in steps: (steps + 1). */
  R.theory = function (steps, scale, rate) {
    const b1 = R.s.map(() => R.effectiveStart(scale)), b2 = b1.slice(), loss = [];
    for (let k = 0; k <= steps; k++) {
      const a = b2.map((b, i) => b * b1[i] ** 2);
      loss.push(0.5 * R.yy - E.sum(a.map((v, i) => R.s[i] * v)) + 0.5 * E.sum(a.map((v) => D * v * v)));
      R.s.forEach((s, i) => {
        const error = s - a[i] * D, [one, two] = [b1[i], b2[i]];
        b1[i] += (rate * two * one * error) / M;
        b2[i] += rate * one ** 2 * error;
      });
    }
    return loss;
  };

  /* ---- the network ---- */

  /* [encoders (hidden, M · items), middle (hidden, hidden), decoders (M · outputs, hidden)], each module orthogonal. */
  R.draw = function (scale, seed) {
    const generator = E.generator(seed), encoders = new Float64Array(HIDDEN * M * ITEMS), decoders = new Float64Array(M * OUTPUTS * HIDDEN);
    for (let domain = 0; domain < M; domain++) {
      const one = E.orthogonal(generator.normals(HIDDEN * ITEMS), HIDDEN, ITEMS, scale);
      for (let h = 0; h < HIDDEN; h++) for (let f = 0; f < ITEMS; f++) encoders[h * M * ITEMS + domain * ITEMS + f] = one[h * ITEMS + f];
    }
    const middle = E.orthogonal(generator.normals(HIDDEN * HIDDEN), HIDDEN, HIDDEN, scale);
    for (let domain = 0; domain < M; domain++)
      decoders.set(E.orthogonal(generator.normals(OUTPUTS * HIDDEN), OUTPUTS, HIDDEN, scale), domain * OUTPUTS * HIDDEN);
    return [encoders, middle, decoders];
  };

  R.trainer = function (weights, mask) {
    const [encoders, middle, decoders] = weights, columns = M * ITEMS, rows = M * OUTPUTS, routes = mask.filter(Boolean).length || 1, rate = R.step(mask);
    const make = (n) => new Float64Array(n), inner = make(HIDDEN * columns), map = make(rows * columns), back = make(HIDDEN * columns);
    const error = make(rows * columns), g0 = make(encoders.length), g1 = make(middle.length), g2 = make(decoders.length);
    function answer() {
      E.product(middle, encoders, HIDDEN, HIDDEN, columns, { out: inner });
      E.product(decoders, inner, rows, HIDDEN, columns, { out: map });
    }
    function step() {
      answer();
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
          const trained = mask[Math.floor(i / OUTPUTS) * M + Math.floor(j / ITEMS)];
          error[i * columns + j] = trained ? (D * map[i * columns + j] - R.yx[(i % OUTPUTS) * ITEMS + (j % ITEMS)]) / routes : 0;
        }
      E.product(decoders, error, HIDDEN, rows, columns, { aT: true, out: back });
      E.product(middle, back, HIDDEN, HIDDEN, columns, { aT: true, out: g0 });
      E.product(back, encoders, HIDDEN, columns, HIDDEN, { bT: true, out: g1 });
      E.product(error, inner, rows, columns, HIDDEN, { bT: true, out: g2 });
      for (const [w, g] of [[encoders, g0], [middle, g1], [decoders, g2]]) for (let i = 0; i < w.length; i++) w[i] -= rate * g[i];
    }
    /* Half the mean squared error of every route, (M, M). */
    function losses() {
      answer();
      return cells((out, into) => {
        let cross = 0, square = 0;
        for (let p = 0; p < OUTPUTS; p++)
          for (let f = 0; f < ITEMS; f++) {
            const value = map[(out * OUTPUTS + p) * columns + into * ITEMS + f];
            cross += value * R.yx[p * ITEMS + f];
            square += value * value;
          }
        return 0.5 * R.yy - cross + 0.5 * D * square;
      });
    }
    return { step, losses };
  };

  R.over = function (losses, mask) {
    const chosen = losses.filter((_, i) => mask[i]);
    return chosen.length ? E.sum(chosen) / chosen.length : 0;
  };

  R.compute = function ({ mask, scale, seed, steps }) {
    const net = R.trainer(R.draw(scale, seed), mask);
    for (let k = 0; k < steps; k++) net.step();
    return { losses: net.losses(), reachable: R.reachable(mask).map(Number), predicted: R.predictedLoss(mask, scale), theory: R.theory(steps, scale, R.step(mask)) };
  };

  /* ---- on the page ---- */

  let mask = R.circulant(3), net = null, step = 0, path = null, seed = 1, cursor = null, patience = 0;

  R.start = function (models) {
    const place = E.element("routing", models.grid);
    place.tabIndex = 0;
    place.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!move && event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      cursor = cursor || [0, 0];
      if (move) cursor = [0, 1].map((k) => (cursor[k] + move[k] + M) % M); else R.toggle(models, cursor[0] * M + cursor[1]);
      R.paint(models);
      E.say("routing", `Input ${cursor[1] + 1} to output ${cursor[0] + 1}: ${mask[cursor[0] * M + cursor[1]] ? "trained" : "not trained"}.`);
    });
    place.addEventListener("blur", () => {
      cursor = null;
      R.paint(models);
    });
    R.reset(models);
    if (!E.still()) R.go(models);
  };

  R.toggle = function (models, i) {
    mask = mask.map((on, k) => (k === i ? !on : on));
    R.reset(models);
  };

  R.tap = function (models) {
    const { x, y } = models.grid.tags[1];
    const [into, out] = [Math.round(x) - 1, Math.round(y) - 1];
    if (into >= 0 && into < M && out >= 0 && out < M) R.toggle(models, out * M + into);
  };

  R.preset = function (models) {
    mask = [R.circulant(3), R.circulant(2), R.star(), R.blocks(2), cells(() => false)][models.pattern.active];
    R.reset(models);
    if (models.pattern.active < 4) R.go(models);
  };

  R.update = (models) => {
    R.reset(models);
    R.go(models);
  };

  R.again = function (models) {
    seed += 1;
    R.update(models);
  };

  R.reset = function (models) {
    E.stop("routing");
    models.go.label = "Start";
    net = R.trainer(R.draw(models.scale.value, seed), mask);
    step = 0;
    patience = 0;
    path = { step: [], trained: [], untrained: [] };
    R.look(models);
  };

  /* Start, pause and go on: the network trains before the reader's eyes. */
  R.go = function (models) {
    if (E.running("routing")) {
      E.stop("routing");
      models.go.label = "Go on";
      return;
    }
    if (!mask.some(Boolean)) return;
    if (step >= MOST || patience > 120) R.reset(models);
    models.go.label = "Pause";
    E.run("routing", () => {
      const begin = performance.now();
      for (let k = 0; k < 10 && performance.now() - begin < 12; k++, step++) net.step();
      const losses = R.look(models), done = R.over(losses, mask) < 0.002 * 0.5 * R.yy;
      patience += done ? 10 : 0;
      if (step < MOST && patience <= 120) return true;
      models.go.label = "Start anew";
      return false;
    });
  };

  R.look = function (models) {
    const losses = net.losses(), full = 0.5 * R.yy, untrained = mask.map((on) => !on);
    path.step.push(step);
    path.trained.push(R.over(losses, mask) / full);
    path.untrained.push(untrained.some(Boolean) ? R.over(losses, untrained) / full : NaN);
    const end = Math.max(300, step), scale = models.scale.value;
    models.curves.data = { step: path.step.slice(), trained: path.trained.slice(), untrained: path.untrained.slice() };
    models.time.setv({ start: 0, end });
    const regular = R.regular(mask) && scale <= 0.6, times = E.range(101, 0, end).map(Math.round), theory = regular ? R.theory(end, scale, R.step(mask)) : null;
    models.theory.data = regular ? { step: times, loss: times.map((k) => theory[k] / full) } : { step: [], loss: [] };
    const predicted = R.predictedLoss(mask, scale), last = path.step.length - 1;
    R.paint(models, losses.map((loss) => loss / full));
    const open = R.reachable(mask).filter((yes, i) => yes && !mask[i]).length, other = untrained.filter(Boolean).length;
    const hope = !mask.some(Boolean) ? "Click on routes to train them." : other === 0 ? "All routes are trained: nothing is left to infer." :
      `Of ${other} untrained routes, ${open === other ? "all" : open || "none"} hang${open === 1 ? "s" : ""} together with trained ones (dots).`;
    const bet = open < other || predicted === null ? "" : predicted < 0.5 ? ` Theory for wide networks: ${E.number(100 * predicted)} % will be left there.` : " But these weights are not small, and the theory of small ones no longer holds.";
    E.say("routing", `Step ${step}: ${(100 * path.trained[last]).toFixed(0)} % of the loss left on trained routes` +
      (other ? `, ${(100 * path.untrained[last]).toFixed(0)} % on the others. ` : ". ") + hope + bet);
    return losses;
  };

  let shares = null;
  R.paint = function (models, given = shares) {
    shares = given;
    const hot = E.colour("gated"), reach = R.reachable(mask), place = E.range(M * M);
    models.cells.data = {
      x: place.map((i) => (i % M) + 1), y: place.map((i) => Math.floor(i / M) + 1),
      learned: place.map((i) => Math.min(1, Math.max(0, 1 - shares[i]))), colour: place.map(() => hot),
      edge: place.map((i) => (cursor && i === cursor[0] * M + cursor[1] ? E.colour("bias") : mask[i] ? E.colour("ink") : E.colour("grid"))),
      width: place.map((i) => (cursor && i === cursor[0] * M + cursor[1] ? 4 : mask[i] ? 2.5 : 1)),
      mark: place.map((i) => (mask[i] ? "" : reach[i] ? "•" : "×")), ink: place.map(() => E.colour("ink")),
    };
  };
  R.repaint = (models) => R.paint(models);
})(globalThis);
