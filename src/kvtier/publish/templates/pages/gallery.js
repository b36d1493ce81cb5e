"use strict";
{
  const words = document.getElementById("words"), part = document.getElementById("part"), found = document.getElementById("found");
  const labels = [...document.querySelectorAll("input[name=label]")], cards = [...document.querySelectorAll(".card")];
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean), classes = labels.filter((box) => box.checked).map((box) => box.value);
    let count = 0;
    for (const card of cards) {
      const text = card.dataset.words.toLowerCase();
      const kept = wanted.every((word) => text.includes(word)) && (!classes.length || classes.includes(card.dataset.label)) && (!part.value || card.dataset.part === part.value);
      card.hidden = !kept;
      count += kept;
    }
    found.textContent = `${count} of ${cards.length} figures`;
  };
  document.querySelector(".filters").addEventListener("input", filter);
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  filter();
}
