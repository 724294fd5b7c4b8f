/* Learning with biases alone. Twins: lib.biases (a Frozen network, answers, mean_loss, train_biases on the squared loss with all items in one
   batch and a constant rate). Weights never move; a unit's kink is at -b/w, and learning a bias moves it. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), K = (E.kinks = {});
  const POINTS = 81, RATE = 0.02, MOST = 1500;
  K.GRID = E.range(POINTS, -1, 1);

  /* Input weights uniform in ±2, output weights in ±12/√units, and biases that put the kinks anywhere in [-1, 1]. */
  K.draw = function (units, seed) {
    const generator = E.generator(seed), signed = () => generator.uniforms(units).map((u) => 2 * u - 1);
    const w = signed().map((u) => 2 * u), a = signed().map((u) => (12 / Math.sqrt(units)) * u);
    return { w, a, b: signed().map((kink, u) => -w[u] * kink) };
  };

  /* y(x) = Σ a relu(w x + b). */
  K.answer = (net, x) => x.map((one) => {
    let y = 0;
    for (let u = 0; u < net.w.length; u++) {
      const z = net.w[u] * one + net.b[u];
      if (z > 0) y += net.a[u] * z;
    }
    return y;
  });

  /* Adam on the biases; the loss is half the mean squared error over the grid. `step()` returns the loss before it. */
  K.trainer = function (net, target) {
    const units = net.w.length, first = new Float64Array(units), second = new Float64Array(units), slope = new Float64Array(units);
    let time = 0;
    function look() {
      slope.fill(0);
      let loss = 0;
      for (let i = 0; i < POINTS; i++) {
        const x = K.GRID[i];
        let y = 0;
        for (let u = 0; u < units; u++) {
          const z = net.w[u] * x + net.b[u];
          if (z > 0) y += net.a[u] * z;
        }
        const error = (y - target[i]) / POINTS;
        loss += (0.5 * (y - target[i]) ** 2) / POINTS;
        for (let u = 0; u < units; u++) if (net.w[u] * x + net.b[u] > 0) slope[u] += net.a[u] * error;
      }
      return loss;
    }
    function step() {
      const loss = look();
      time += 1;
      const [one, two] = [1 - 0.9 ** time, 1 - 0.999 ** time];
      for (let u = 0; u < units; u++) {
        first[u] = 0.9 * first[u] + 0.1 * slope[u];
        second[u] = 0.999 * second[u] + 0.001 * slope[u] ** 2;
        net.b[u] -= ((RATE / one) * first[u]) / (Math.sqrt(second[u] / two) + 1e-8);
      }
      return loss;
    }
    return { step, loss: look };
  };

  K.TARGETS = {
    hat: (x) => 0.6 - 1.2 * Math.max(0, Math.abs(x) - 0.2) * (Math.abs(x) < 0.7) - 0.6 * (Math.abs(x) >= 0.7),
    wave: (x) => 0.7 * Math.sin(2 * Math.PI * x),
    stairs: (x) => 0.35 * Math.floor(2 * x + 0.51) + 0.1,
  };

  K.compute = function ({ units, seed, target, steps }) {
    const net = K.draw(units, seed), goal = K.GRID.map(K.TARGETS[target]), trainer = K.trainer(net, goal);
    const before = trainer.loss();
    for (let k = 0; k < steps; k++) trainer.step();
    return { target: goal, before, loss: trainer.loss(), bias: net.b, answer: K.answer(net, K.GRID) };
  };

  /* ---- on the page ---- */

  let net = null, trainer = null, goal = K.GRID.map(K.TARGETS.wave), step = 0, seed = 4, drawing = null;

  K.start = function (models) {
    const view = E.view("kinks", models.paper), place = view.el;
    place.style.touchAction = "none";
    const at = (event) => {
      const box = view.canvas_view.el.getBoundingClientRect();
      return [view.frame.x_scale.invert(event.clientX - box.left), view.frame.y_scale.invert(event.clientY - box.top)];
    };
    place.addEventListener("pointerdown", (event) => {
      E.stop("kinks");
      place.setPointerCapture(event.pointerId);
      drawing = [at(event)];
    });
    place.addEventListener("pointermove", (event) => {
      if (!drawing) return;
      for (const one of event.getCoalescedEvents ? event.getCoalescedEvents() : [event]) drawing.push(at(one));
      K.drawn(models);
    });
    const end = () => {
      if (!drawing) return;
      const enough = drawing.length > 2;
      drawing = null;
      if (enough) K.update(models);
    };
    place.addEventListener("pointerup", end);
    place.addEventListener("pointercancel", end);
    K.update(models);
    if (!E.still()) return;
    E.stop("kinks");
    K.paint(models);
    E.say("kinks", "A network with frozen random weights, before it learns. Press Learn anew, or draw a curve.");
  };

  /* The target follows the pointer: between two of its places a straight line, elsewhere it stays. */
  K.drawn = function (models) {
    const [[x0, y0], [x1, y1]] = drawing.slice(-2), [low, high] = [Math.min(x0, x1), Math.max(x0, x1)], reach = 1 / (POINTS - 1);
    goal = goal.map((old, i) => {
      const x = K.GRID[i];
      if (x < low - reach || x > high + reach) return old;
      const share = x1 === x0 ? 1 : Math.min(1, Math.max(0, (x - x0) / (x1 - x0)));
      return Math.min(1.2, Math.max(-1.2, y0 + share * (y1 - y0)));
    });
    models.target.data = { x: K.GRID, y: goal.slice() };
  };

  K.preset = function (models) {
    goal = K.GRID.map(Object.values(K.TARGETS)[models.curve.active]);
    K.update(models);
  };

  K.again = function (models) {
    seed += 1;
    K.update(models);
  };

  /* Begin from biases of zero and learn, five steps a frame at first and more of them the longer it takes. */
  K.update = function (models) {
    net = K.draw(2 ** models.units.value, seed);
    trainer = K.trainer(net, goal);
    step = 0;
    models.target.data = { x: K.GRID, y: goal.slice() };
    const path = { step: [], loss: [] }, size = E.sum(goal.map((y) => y * y)) / (2 * POINTS) || 1;
    E.run("kinks", () => {
      const begin = performance.now();
      let loss = trainer.loss();
      path.step.push(step);
      path.loss.push(loss / size);
      for (let k = step / 80; k > -5 && performance.now() - begin < 12; k--, step++) loss = trainer.step();
      models.path.data = { step: path.step.slice(), loss: path.loss.slice() };
      models.time.setv({ start: 0, end: Math.max(300, step) });
      K.paint(models);
      const done = step >= MOST;
      const inside = Array.from(net.w).filter((w, u) => Math.abs(net.b[u] / w) < 1).length;
      E.say("kinks", `Step ${step}: error ${(100 * Math.sqrt(loss / size)).toFixed(0)} % of the curve's size. ${net.w.length} units with frozen weights; ` +
        `${inside} of their kinks lie inside of the picture.`);
      return !done;
    });
  };

  K.paint = function (models) {
    const units = E.range(net.w.length), kink = units.map((u) => -net.b[u] / net.w[u]);
    models.answer.data = { x: K.GRID, y: K.answer(net, K.GRID) };
    models.marks.data = { x: kink, y: units.map((u) => -1.11 + (net.w[u] > 0 ? 0 : 0.07)), size: units.map((u) => 5 + (8 * Math.abs(net.a[u] * net.w[u]) * Math.sqrt(net.w.length)) / 24) };
  };
  K.repaint = (models) => K.paint(models);
})(globalThis);
