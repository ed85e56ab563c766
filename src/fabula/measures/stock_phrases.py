"""Phrases that have been used so often that readers no longer see what they say.

English idioms and stock comparisons found in any dictionary of idioms, chosen because they mean
little else in fiction. "At last" or "once upon a time" are not among them.
"""

from __future__ import annotations

_LINES = """
a bitter pill to swallow | a blessing in disguise | a breath of fresh air
a chip off the old block | a chip on her shoulder | a chip on his shoulder | a deafening silence
a dime a dozen | a drop in the ocean | a fate worse than death | a force to be reckoned with
a heart of gold | a heart of stone | a knight in shining armor | a knight in shining armour
a matter of life and death | a picture is worth a thousand words | a rude awakening
a sight for sore eyes | a storm in a teacup | a twinkle in her eye | a twinkle in his eye
against all odds | all hell broke loose | all in a day's work | all that glitters is not gold
all things considered | armed to the teeth | as black as night | as blind as a bat
as bold as brass | as brave as a lion | as bright as day | as busy as a bee | as clear as crystal
as clear as day | as clear as mud | as cold as ice | as cool as a cucumber | as dead as a doornail
as deaf as a post | as easy as pie | as free as a bird | as fresh as a daisy | as good as gold
as hard as nails | as light as a feather | as mad as a hatter | as old as the hills
as pale as a ghost | as pretty as a picture | as proud as a peacock | as quick as lightning
as quiet as a mouse | as red as a beetroot | as sharp as a razor | as sick as a dog
as silent as the grave | as slippery as an eel | as snug as a bug in a rug | as stubborn as a mule
as thick as thieves | as tough as old boots | as white as a ghost | as white as a sheet
at a loss for words | at death's door | at the drop of a hat | at the end of the day
at the end of the tunnel | at the speed of light | avoid like the plague
avoided it like the plague | back to square one | bated breath | beat around the bush
beauty is in the eye of the beholder | beggars can't be choosers | better late than never
better safe than sorry | between a rock and a hard place | bit off more than | bit the bullet
bite the bullet | blood boiled | blood is thicker than water | blood ran cold | bored to death
bored to tears | bull in a china shop | burn the midnight oil | burned the midnight oil
burning the midnight oil | bury the hatchet | butterflies in her stomach
butterflies in his stomach | butterflies in my stomach | by the skin of her teeth
by the skin of his teeth | by the skin of my teeth | calm before the storm | caught red-handed
chilled to the bone | clear as a bell | cold sweat | crystal clear | cut to the chase
deer in the headlights | doom and gloom | drop-dead gorgeous | easier said than done
every cloud has a silver lining | every fiber of her being | every fiber of his being
every fiber of my being | every fibre of her being | every fibre of his being
every fibre of my being | eyes like saucers | fall head over heels | fell head over heels
fell on deaf ears | few and far between | fit as a fiddle | fit like a glove
for all intents and purposes | from the bottom of her heart | from the bottom of his heart
from the bottom of my heart | frozen in her tracks | frozen in his tracks | give up the ghost
gone with the wind | grin from ear to ear | grinned from ear to ear | grinning from ear to ear
hair stood on end | hard as a rock | head over heels | heart of gold | heart sank like a stone
heart skipped a beat | hit the nail on the head | hook, line and sinker | in broad daylight
in the blink of an eye | in the heat of the moment | in the nick of time | in the same boat
in the twinkling of an eye | it was a dark and stormy night | jump out of my skin
jumped out of her skin | jumped out of his skin | jumped out of my skin | last but not least
leave no stone unturned | left no stone unturned | let sleeping dogs lie
let the cat out of the bag | light at the end of the tunnel | like a bat out of hell
like a bolt from the blue | like a deer in headlights | like a fish out of water
like a moth to a flame | like a ton of bricks | like looking for a needle in a haystack
like there was no tomorrow | like two peas in a pod | living on borrowed time
love at first sight | mad as a hatter | made her blood boil | made his blood boil
more than meets the eye | needle in a haystack | needless to say | never in a million years
nipped it in the bud | no stone unturned | nothing ventured, nothing gained | old as time itself
only time will tell | out of the blue | out of the frying pan | pale as a ghost | play with fire
playing with fire | plenty of fish in the sea | pretty as a picture | quick as a flash
quiet as a mouse | raining cats and dogs | read between the lines | rear its ugly head
reared its ugly head | rude awakening | sadder but wiser | scared out of her wits
scared out of his wits | scared to death | selling like hot cakes | shiver down her spine
shiver down his spine | shiver down my spine | shivers down her spine | shivers down his spine
shivers down my spine | sick as a dog | sigh of relief | sleep like a log | slept like a baby
slept like a log | slow as molasses | smooth as silk | spread like wildfire
stick out like a sore thumb | still waters run deep | stood out like a sore thumb
strong as an ox | sweat of his brow | swept off her feet | the apple of her eye
the apple of his eye | the apple of my eye | the ball is in your court | the best of both worlds
the calm before the storm | the elephant in the room | the grass is always greener
the last straw | the lesser of two evils | the moment of truth
the straw that broke the camel's back | the tip of the iceberg | the whole nine yards
the writing on the wall | thick as thieves | think outside the box | through thick and thin
time flies | time stood still | tip of the iceberg | to make a long story short | to no avail
took the bull by the horns | tried and true | turn over a new leaf | turned over a new leaf
under the weather | up in arms | vanish into thin air | vanished into thin air
walking on eggshells | weak at the knees | went in one ear and out the other
what goes around comes around | when all is said and done | when push comes to shove
white as a ghost | white as a sheet | with bated breath | with flying colors | with flying colours
without further ado | word to the wise | wouldn't hurt a fly
"""

STOCK_PHRASES = frozenset(
    phrase.strip() for line in _LINES.strip().splitlines() for phrase in line.split("|")
)
"""268 phrases, in lower case, with straight apostrophes."""
