"""A small set that we wrote: what people want remembered, questions about it in other words, and
questions without an answer.
"""

# What is remembered, and a question that it answers.
ANSWERED: tuple[tuple[str, str], ...] = (
    ("My dog is called Rex and he is afraid of thunder.", "What is the name of my pet?"),
    ("I live in Brno, in a flat near the main station.", "Which city is my home in?"),
    ("Anna is allergic to peanuts.", "What food must Anna avoid?"),
    ("We deploy on Tuesdays, never on Fridays.", "On which day do releases go out?"),
    ("The staging database runs on port 5433.", "How do I reach the test Postgres server?"),
    ("I prefer short answers without bullet points.", "How should replies be formatted?"),
    ("My wedding anniversary is on the third of June.", "When did I get married?"),
    (
        "The invoice template is in the shared folder under finance.",
        "Where can I find the form for billing customers?",
    ),
    (
        "Our backend is written in Python, the console in TypeScript.",
        "What language is the server in?",
    ),
    ("My doctor is Dr. Novak, her practice opens at eight.", "Who is my physician?"),
    ("I am training for a half marathon in October.", "What race am I preparing for?"),
    (
        "The wifi at the cottage is called pinewood.",
        "What is the network name at the weekend house?",
    ),
    ("Peter moved from sales to support in spring.", "Which team does Peter work in now?"),
    (
        "We decided to use SQLite instead of a message queue.",
        "Why is there no Kafka in our system?",
    ),
    (
        "Tests must pass on Python 3.11 before anything is merged.",
        "What is required for a pull request to be accepted?",
    ),
    ("I drink coffee only before noon.", "Should you order me an espresso in the evening?"),
    ("The car is due for inspection in November.", "When does the vehicle need its check-up?"),
    ("My sister Clara studies marine biology in Lisbon.", "What does my sibling do at university?"),
    (
        "Never book flights with a layover shorter than ninety minutes.",
        "How long should connections be when travelling by plane?",
    ),
    (
        "The office plants are watered on Mondays.",
        "When is somebody taking care of the greenery at work?",
    ),
    (
        "I finished reading a book about the history of salt.",
        "Which non-fiction have I read lately?",
    ),
    ("The heating in the meeting room is broken.", "Why is it so cold where we hold our meetings?"),
    ("Our largest customer is a bakery chain in Vienna.", "Who brings us the most revenue?"),
    ("My bicycle was stolen last summer.", "What happened to my bike?"),
    ("Dates in reports are written day first.", "Which date format should documents use?"),
    (
        "The children start school at a quarter to eight.",
        "What time do the kids have to be in class?",
    ),
    ("I play the cello in an amateur orchestra.", "Which instrument do I practise?"),
    ("Backups are kept for ninety days in two places.", "How long do we store copies of our data?"),
    (
        "My grandmother's recipe for plum dumplings needs curd cheese.",
        "What goes into the family dish with fruit?",
    ),
    (
        "The landlord wants the rent by the fifth of each month.",
        "When do I have to pay for the apartment?",
    ),
    ("I am colour-blind, do not rely on red and green.", "What should charts for me look like?"),
    (
        "Marek is the only one who can restart the build server.",
        "Whom do I call when continuous integration hangs?",
    ),
    ("We keep the garden shed key under the blue pot.", "How do I get into the tool hut?"),
    ("My mother speaks Hungarian but not English.", "In which language should a letter to mum be?"),
    ("The conference in Oslo pays for the hotel.", "Who covers my accommodation in Norway?"),
    ("I gave up smoking two years ago.", "Do I use tobacco?"),
)

# Nothing above answers these.
UNANSWERED: tuple[str, ...] = (
    "How tall is the Eiffel tower?",
    "Translate good morning into Japanese.",
    "What is seventeen times twenty-three?",
    "Who won the football match yesterday?",
    "Write a haiku about autumn leaves.",
    "Which shares should a beginner buy?",
    "How do I remove a wine stain from a carpet?",
    "Explain quantum entanglement to a child.",
    "What is the capital of Mongolia?",
    "Is there life on Mars?",
    "How many legs does a lobster have?",
    "Summarise the plot of Hamlet.",
    "What does the error ECONNRESET mean?",
    "Which vitamins are in kale?",
    "Who invented the printing press?",
    "How does a heat pump work?",
    "What rhymes with orange?",
    "Convert ten miles to kilometres.",
    "When was the first moon landing?",
    "What causes the northern lights?",
)

# Conversations turn by turn: names that look alike, numbers, greetings around facts, answers that
# need their question.
TALKS: dict[str, tuple[str, ...]] = {
    "workshop": (
        "Irena: Hi Tomas! How was the weekend?",
        "Tomas: Hello Irena, quiet. I repaired the old lathe, the one with serial number K-217.",
        "Irena: Nice! Did you find the spare belt?",
        "Tomas: Yes, behind the paint cans, exactly where Pavla said.",
        "Irena: And the bigger one, K-271, does it still rattle?",
        "Tomas: It does. The bearing has to be replaced, I ordered one for 840 crowns.",
        "Irena: That's less than I feared. When will it come?",
        "Tomas: On Thursday, the carrier said before noon.",
        "Irena: Great. By the way, I signed up for the welding course in Ostrava.",
        "Tomas: Wow, congratulations! Who teaches it?",
        "Irena: A woman called Judita, she built bridges in Norway for ten years.",
    ),
    "garden": (
        "Pavla: Good morning! Look what the hail did to the tomatoes.",
        "Irena: Oh no. All of them?",
        "Pavla: Only the early ones by the south wall, the others are under glass.",
        "Irena: Lucky. My courgettes are taking over the whole bed.",
        "Pavla: Bring some on Sunday, I'm making ratatouille for eight people.",
        "Irena: Will do. Is your brother coming as well?",
        "Pavla: Marek can't, his flight from Lisbon lands on Monday only.",
        "Irena: Pity. And Tomas?",
        "Pavla: He promised to bring the plum brandy from his uncle.",
        "Irena: Then I'll walk home instead of driving!",
    ),
    "move": (
        "Marek: Hey, we finally signed the lease for the flat on Kotlarska street.",
        "Tomas: Fantastic! How much is it now?",
        "Marek: Nineteen thousand with heating, the old place on Kounicova was twenty-two.",
        "Tomas: When do you need help with the boxes?",
        "Marek: The last Saturday of the month. The piano is the problem, it weighs 240 kilos.",
        "Tomas: I can borrow a stair climber from the workshop.",
        "Marek: You're a lifesaver. Ema is worried about the cat more than about the piano.",
        "Tomas: What's it called again?",
        "Marek: Bramble. She hides in wardrobes for days after any change.",
        "Tomas: Leave her with Pavla for the weekend, she loves cats.",
        (
            "Marek: Good thought. Ema starts at the new hospital on the first, night shifts at the"
            " beginning."
        ),
    ),
}
# A question, and the turns that answer it.
TALK_QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Which lathe did Tomas repair?", (TALKS["workshop"][1],)),
    ("Where was the spare belt?", (TALKS["workshop"][3],)),
    ("What is wrong with K-271?", (TALKS["workshop"][5],)),
    ("How much did the replacement bearing cost?", (TALKS["workshop"][5],)),
    ("On which day does the delivery for the machine arrive?", (TALKS["workshop"][7],)),
    ("What course is Irena taking?", (TALKS["workshop"][8],)),
    ("Who is the instructor of the welding class?", (TALKS["workshop"][10],)),
    ("Where did Judita work before?", (TALKS["workshop"][10],)),
    ("What happened to Pavla's tomatoes?", (TALKS["garden"][0], TALKS["garden"][2])),
    ("Which vegetables does Irena have too many of?", (TALKS["garden"][3],)),
    ("What is Pavla cooking on Sunday?", (TALKS["garden"][4],)),
    ("How many guests does Pavla expect?", (TALKS["garden"][4],)),
    ("Why can Marek not come to the dinner?", (TALKS["garden"][6],)),
    ("What will Tomas bring to Pavla's?", (TALKS["garden"][8],)),
    ("Where is Marek's new apartment?", (TALKS["move"][0],)),
    ("What is the rent on Kotlarska?", (TALKS["move"][2],)),
    ("What did the flat on Kounicova cost?", (TALKS["move"][2],)),
    ("When is Marek moving house?", (TALKS["move"][4],)),
    ("How heavy is the piano?", (TALKS["move"][4],)),
    ("What can Tomas borrow for carrying the instrument?", (TALKS["move"][5],)),
    ("What is the name of Ema's cat?", (TALKS["move"][8],)),
    ("How does Bramble react to changes?", (TALKS["move"][8],)),
    ("Who could look after the pet during the move?", (TALKS["move"][9],)),
    ("When does Ema begin her new job?", (TALKS["move"][10],)),
)
