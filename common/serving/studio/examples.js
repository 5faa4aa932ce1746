// Example sentences, by language.

export const EXAMPLES = {
  en: [
    "Hello there! How are you today?",
    "The train to London leaves at 9:45 from platform 3.",
    "I never said she took the money. Somebody else did, and we both know who.",
  ],
  de: [
    "Guten Morgen! Wie geht es Ihnen heute?",
    "Der Zug nach Hamburg fährt um 9:45 Uhr von Gleis 3.",
    "Das habe ich nie gesagt. Jemand anders war es, und wir wissen beide, wer.",
  ],
  fr: [
    "Bonjour ! Comment allez-vous aujourd’hui ?",
    "Le train pour Lyon part à 9 h 45 de la voie 3.",
    "Je n’ai jamais dit cela. C’était quelqu’un d’autre, et nous savons tous les deux qui.",
  ],
  es: [
    "¡Hola! ¿Cómo está usted hoy?",
    "El tren a Sevilla sale a las 9:45 del andén 3.",
    "Yo nunca dije eso. Fue otra persona, y los dos sabemos quién.",
  ],
  it: [
    "Buongiorno! Come sta oggi?",
    "Il treno per Roma parte alle 9:45 dal binario 3.",
    "Non l’ho mai detto. È stato qualcun altro, e sappiamo entrambi chi.",
  ],
  pt: [
    "Bom dia! Como está hoje?",
    "O comboio para o Porto parte às 9:45 da linha 3.",
    "Eu nunca disse isso. Foi outra pessoa, e ambos sabemos quem.",
  ],
  nl: [
    "Goedemorgen! Hoe gaat het vandaag met u?",
    "De trein naar Utrecht vertrekt om 9:45 van spoor 3.",
    "Dat heb ik nooit gezegd. Het was iemand anders, en we weten allebei wie.",
  ],
  pl: [
    "Dzień dobry! Jak się pan dziś miewa?",
    "Pociąg do Krakowa odjeżdża o 9:45 z peronu 3.",
    "Nigdy tego nie powiedziałem. To był ktoś inny i oboje wiemy kto.",
  ],
};
