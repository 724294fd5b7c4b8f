/* Explorers on a page: each is built when the reader comes near it, follows the theme's switch, has names for
   screen readers, and says in a sentence what it shows. Without scripts the static picture stays.
   An explorer is an object E[name] with `start(models)` and `update(models)`; models are Bokeh's, by their names. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {});
  const shown = new Map(); // name -> what there is to know about an explorer on this page
  E.timings = {}; // name -> milliseconds of each update

  E.dark = () => document.documentElement.dataset.theme === "dark";
  E.colour = (name) => (E.dark() ? E.palette.dark : E.palette.light)[name] || name;
  E.still = () => matchMedia("(prefers-reduced-motion: reduce)").matches; // then nothing moves before it is asked to
  E.models = (name) => shown.get(name).models;
  E.element = (name, model) => shown.get(name).views.get(model).el;
  E.view = (name, model) => shown.get(name).views.get(model);

  /* The sentence below an explorer; screen readers read it out when it changes. */
  E.say = function (name, text) {
    const { says: place, running } = shown.get(name);
    place.setAttribute("aria-live", running ? "off" : "polite"); // nobody wants to hear every frame
    if (place.textContent !== text) place.textContent = text;
  };

  /* Have an explorer drawn anew, once a frame however many events there are. `what` is the method to call. */
  E.act = function (name, what = "update") {
    const here = shown.get(name);
    if (!here || here.waiting.has(what)) return;
    here.waiting.add(what);
    requestAnimationFrame(() => {
      here.waiting.delete(what);
      const begin = performance.now();
      E[name][what](here.models);
      (E.timings[name] = E.timings[name] || []).push(performance.now() - begin);
    });
  };

  /* Call `step(models)` once a frame until it returns false, or until it is stopped or started anew. */
  E.run = function (name, step) {
    const here = shown.get(name), turn = ++here.turn;
    function frame() {
      if (here.turn !== turn) return;
      const begin = performance.now(), again = step(here.models);
      (E.timings[name] = E.timings[name] || []).push(performance.now() - begin);
      if (again !== false) requestAnimationFrame(frame); else here.running = false;
    }
    here.running = true;
    requestAnimationFrame(frame);
  };
  E.stop = function (name) {
    const here = shown.get(name);
    here.turn++;
    here.running = false;
  };
  E.running = (name) => shown.get(name).running;

  /* Every colour of the book's palette as the theme shows it, on all models of an explorer; paper and ink as well. */
  function paint(here) {
    const dark = E.dark(), { light, dark: night } = E.palette;
    const swap = new Map(Object.keys(light).map((key) => (dark ? [light[key], night[key]] : [night[key], light[key]])));
    for (const model of here.document.all_models)
      for (const property of model) {
        if (!/color$/.test(property.attr)) continue;
        const value = property.get_value(), one = value && typeof value === "object" ? value.value : value;
        if (typeof one !== "string" || !swap.has(one.toLowerCase())) continue;
        const fresh = swap.get(one.toLowerCase());
        model.setv({ [property.attr]: typeof value === "object" ? { ...value, value: fresh } : fresh });
      }
  }

  function everyElement(node, found = []) {
    for (const child of node.children || []) {
      found.push(child);
      everyElement(child, found);
      if (child.shadowRoot) everyElement(child.shadowRoot, found);
    }
    return found;
  }

  /* Names for what Bokeh leaves nameless: the handles of sliders, groups of buttons, canvases. */
  function describe(here, views) {
    const named = (view) => {
      here.views.set(view.model, view);
      const { model } = view, elements = everyElement(view.shadow_el || view.el);
      const title = model.title && typeof model.title === "string" ? model.title : "";
      for (const element of elements) if (element.classList.contains("noUi-handle")) element.setAttribute("aria-label", title || model.name);
      if (model.type === "Figure") {
        view.el.setAttribute("role", "img");
        view.el.setAttribute("aria-label", model.tags[0] || "plot");
      }
      if (model.type === "RadioButtonGroup") {
        view.el.setAttribute("role", "group");
        view.el.setAttribute("aria-label", model.name);
      }
      for (const child of view.child_views || []) named(child);
    };
    for (const view of views) named(view);
  }

  async function build(figure) {
    const name = figure.dataset.explorer, given = JSON.parse(figure.querySelector("script.explorer-model").textContent);
    E.palette = given.palette;
    const stage = figure.querySelector(".explorer-stage");
    stage.hidden = false;
    const before = new Set(Bokeh.documents);
    const manager = await Bokeh.embed.embed_item(given.item, stage);
    const bokeh = Bokeh.documents.find((one) => !before.has(one)), models = {};
    for (const model of bokeh.all_models) if (model.name) models[model.name] = model;
    const says = figure.querySelector(".explorer-says");
    says.hidden = false;
    const here = { document: bokeh, models, says, waiting: new Set(), views: new Map(), turn: 0, running: false };
    shown.set(name, here);
    paint(here);
    describe(here, manager.roots || [...manager]);
    E[name].start(models);
    figure.classList.add("explorer-live");
    new MutationObserver(() => {
      paint(here);
      E.act(name, E[name].repaint ? "repaint" : "update");
    }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  function start() {
    const near = new IntersectionObserver((entries) => {
      for (const entry of entries)
        if (entry.isIntersecting) {
          near.unobserve(entry.target);
          build(entry.target);
        }
    }, { rootMargin: "800px" });
    for (const figure of document.querySelectorAll("figure.explorer")) near.observe(figure);
  }
  if (root.document) {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
  }
})(globalThis);
